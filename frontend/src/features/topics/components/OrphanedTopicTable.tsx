import { type ReactElement, useMemo, useState } from "react";
import { CopyText } from "@/components/CopyText";
import { type Column, DataTable } from "@/components/DataTable";
import { RowButton } from "@/components/GuardedButton";
import { Moment } from "@/components/Moment";
import { SidePanel } from "@/components/SidePanel";
import type { OrphanedTopic } from "@/lib/api/types";
import { formatCount } from "@/lib/format/bytes";
import { useAttachTopic } from "../api/deletedTopics";
import { ReturnForm } from "./ReturnForm";

interface Props {
  clusterId: string;
  topics: readonly OrphanedTopic[];
  refused: string | undefined;
}

/** The orphaned topics, with buttons to attach them. */
export function OrphanedTopicTable({ clusterId, topics, refused }: Props): ReactElement {
  const [attached, setAttached] = useState<OrphanedTopic>();
  const attach = useAttachTopic(clusterId);
  const columns = useMemo(() => columnsOf(refused, setAttached), [refused]);
  const close = (): void => {
    setAttached(undefined);
    attach.reset();
  };
  return (
    <>
      <DataTable
        label="Orphaned topics on storage"
        columns={columns}
        rows={topics}
        rowId={(topic) => topic.id}
        initialSort={[{ id: "name", desc: false }]}
      />
      <SidePanel opened={attached !== undefined} onClose={close} title="Attach the topic">
        {attached && (
          <ReturnForm
            id={attached.id}
            name={attached.name}
            mutation={attach}
            action="Attach the topic"
            done="is attached"
            failure="The topic was not attached"
            onDone={close}
          >
            It becomes one of the cluster&apos;s topics with the id and the records that it had. Its
            configs are the defaults: set them anew.
          </ReturnForm>
        )}
      </SidePanel>
    </>
  );
}

function columnsOf(
  refused: string | undefined,
  onAttach: (topic: OrphanedTopic) => void,
): Column<OrphanedTopic>[] {
  return [
    {
      id: "name",
      header: "Name",
      sortBy: (topic) => topic.name ?? "",
      cell: ({ name }) =>
        name === null ? (
          <span style={{ color: "var(--quiet)" }}>not known</span>
        ) : (
          <span style={{ fontFamily: "var(--mantine-font-family-monospace)" }}>{name}</span>
        ),
    },
    {
      id: "id",
      header: "Topic id",
      cell: (topic) => <CopyText value={topic.id} what="the topic's id" />,
    },
    {
      id: "partitions",
      header: "Partitions",
      align: "right",
      width: 110,
      cell: (topic) => formatCount(topic.partitions),
    },
    {
      id: "found",
      header: "Found",
      width: 130,
      sortBy: (topic) => topic.found_at,
      cell: (topic) => <Moment at={topic.found_at} />,
    },
    {
      id: "attach",
      header: "",
      align: "right",
      width: 100,
      cell: (topic) => (
        <RowButton
          refused={refused}
          aria-label={`Attach ${topic.name ?? topic.id}`}
          onClick={() => {
            onAttach(topic);
          }}
        >
          Attach
        </RowButton>
      ),
    },
  ];
}
