import { type ReactElement, useState } from "react";
import type { Column } from "@/components/DataTable";
import { RowButton } from "@/components/GuardedButton";
import { Moment } from "@/components/Moment";
import { RemovableTable } from "@/components/RemovableTable";
import { SidePanel } from "@/components/SidePanel";
import type { DeletedTopic } from "@/lib/api/types";
import { formatCount } from "@/lib/format/bytes";
import { usePurgeTopic, useUndeleteTopic } from "../api/deletedTopics";
import { ReturnForm } from "./ReturnForm";

interface Props {
  clusterId: string;
  topics: readonly DeletedTopic[] | undefined;
  refused: string | undefined;
}

/** The deleted topics, with buttons to restore and purge them. */
export function DeletedTopicTable({ clusterId, topics, refused }: Props): ReactElement {
  const [returning, setReturning] = useState<DeletedTopic>();
  const undelete = useUndeleteTopic(clusterId);
  const close = (): void => {
    setReturning(undefined);
    undelete.reset();
  };
  return (
    <>
      <RemovableTable
        label="Deleted topics"
        columns={COLUMNS}
        rows={topics}
        initialSort={[{ id: "deleted", desc: true }]}
        actionsWidth={150}
        actions={(topic) => (
          <RowButton
            refused={refused}
            aria-label={`Restore ${topic.name}`}
            onClick={() => {
              setReturning(topic);
            }}
          >
            Restore
          </RowButton>
        )}
        removal={{
          mutation: usePurgeTopic(clusterId),
          name: (topic) => topic.name,
          label: "Purge",
          title: "Purge the topic",
          done: "is gone for good",
          refused,
          effect: ({ name }) => (
            <>
              The records of <code>{name}</code> are deleted now and for good, before its time is
              over. They cannot be restored.
            </>
          ),
        }}
      />
      <SidePanel
        opened={returning !== undefined}
        onClose={close}
        title={`Restore ${returning?.name ?? "the topic"}`}
      >
        {returning && (
          <ReturnForm
            id={returning.id}
            name={returning.name}
            mutation={undelete}
            action="Restore the topic"
            done="is restored"
            failure="The topic was not restored"
            onDone={close}
          >
            It comes back with its records, its configs and its id. Groups go on from their offsets.
          </ReturnForm>
        )}
      </SidePanel>
    </>
  );
}

const COLUMNS: Column<DeletedTopic>[] = [
  {
    id: "name",
    header: "Name",
    sortBy: (topic) => topic.name,
    cell: (topic) => (
      <span style={{ fontFamily: "var(--mantine-font-family-monospace)" }}>{topic.name}</span>
    ),
  },
  {
    id: "partitions",
    header: "Partitions",
    align: "right",
    width: 110,
    sortBy: (topic) => topic.partitions,
    cell: (topic) => formatCount(topic.partitions),
  },
  {
    id: "deleted",
    header: "Deleted",
    width: 150,
    sortBy: (topic) => topic.deleted_at,
    cell: (topic) => <Moment at={topic.deleted_at} />,
  },
  {
    id: "until",
    header: "Records go",
    width: 140,
    sortBy: (topic) => topic.restorable_until,
    cell: (topic) => <Moment at={topic.restorable_until} />,
  },
];
