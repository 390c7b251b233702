import { Button, Group as Row, MultiSelect, Stack, TextInput } from "@mantine/core";
import { notifications } from "@mantine/notifications";
import { type ReactElement, useState } from "react";
import { ConfirmByName } from "@/components/ConfirmByName";
import { ErrorPanel } from "@/components/ErrorPanel";
import { Note, NoteMore } from "@/components/Note";
import type { Group, LowWatermark } from "@/lib/api/types";
import { formatNumber } from "@/lib/format/bytes";
import { useDeleteRecords } from "../api/records";
import { type Choice, choiceComplaint, deletionOf, totalOf } from "../deleting";
import { DeletionPreview } from "./DeletionPreview";

interface Props {
  clusterId: string;
  topic: string;
  partitions: number;
  /** The cluster's groups, to name those that have not read the records yet. */
  groups: readonly Group[];
  onDone: () => void;
}

/**
 * The three steps of a deletion: choose, see what will be deleted, confirm with the topic's name.
 */
export function DeleteRecords(props: Props): ReactElement {
  const { clusterId, topic, partitions, groups, onDone } = props;
  const remove = useDeleteRecords(clusterId, topic);
  const [choice, setChoice] = useState<Choice>({ partitions: [], before: "" });
  const [plan, setPlan] = useState<LowWatermark[]>();
  const [asking, setAsking] = useState(false);
  const complaint = choiceComplaint(choice);
  const total = plan === undefined ? 0 : totalOf(plan);
  // It deletes up to the offsets of the preview: records that were produced since then stay.
  const apply = (): void => {
    const moves = (plan ?? []).map(({ partition, low_watermark }) => ({
      partition,
      before_offset: low_watermark,
    }));
    const onSuccess = (lows: LowWatermark[]): void => {
      notifications.show({ message: `${formatNumber(totalOf(lows), "record")} deleted` });
      onDone();
    };
    remove.mutate({ partitions: moves, look: false }, { onSuccess });
  };
  if (plan === undefined) {
    return (
      <form
        onSubmit={(event) => {
          event.preventDefault();
          if (complaint !== null) return;
          remove.mutate({ ...deletionOf(choice, partitions), look: true }, { onSuccess: setPlan });
        }}
      >
        <Stack gap="md">
          <Warning />
          <Fields choice={choice} partitions={partitions} onChange={setChoice} />
          {remove.error && (
            <ErrorPanel error={remove.error} what="The effect could not be computed" />
          )}
          <Row justify="flex-end">
            <Button type="submit" disabled={complaint !== null} loading={remove.isPending}>
              Show what will be deleted
            </Button>
          </Row>
        </Stack>
      </form>
    );
  }
  return (
    <Stack gap="md">
      <DeletionPreview clusterId={clusterId} topic={topic} plan={plan} groups={groups} />
      <Row justify="space-between">
        <Button
          variant="default"
          onClick={() => {
            setPlan(undefined);
            remove.reset();
          }}
        >
          Back
        </Button>
        <Button
          color="red"
          disabled={total === 0}
          onClick={() => {
            setAsking(true);
          }}
        >
          Delete {formatNumber(total, "record")}
        </Button>
      </Row>
      <ConfirmByName
        opened={asking}
        onClose={() => {
          setAsking(false);
          remove.reset();
        }}
        onConfirm={apply}
        name={topic}
        title="Delete the records"
        action={`Delete ${formatNumber(total, "record")}`}
        failure="The records were not deleted"
        pending={remove.isPending}
        error={remove.error}
      >
        They are deleted at once and for good. Records that were produced since then stay.
      </ConfirmByName>
    </Stack>
  );
}

function Warning(): ReactElement {
  return (
    <Note tone="failed">
      <strong>Deleted records cannot be brought back.</strong>
      <NoteMore>
        The oldest go, up to the end or to an offset. Offsets are not used again, and the topic and
        its configs stay. Nothing is deleted before you have seen what goes.
      </NoteMore>
    </Note>
  );
}

interface FieldsProps {
  choice: Choice;
  partitions: number;
  onChange: (choice: Choice) => void;
}

function Fields({ choice, partitions, onChange }: FieldsProps): ReactElement {
  return (
    <>
      {partitions > 1 && (
        <MultiSelect
          label="Partitions"
          placeholder={
            choice.partitions.length === 0 ? `All ${String(partitions)} of them` : undefined
          }
          data={Array.from({ length: partitions }, (_, number) => String(number))}
          limit={100}
          searchable
          value={choice.partitions}
          onChange={(picked) => {
            onChange({ ...choice, partitions: picked });
          }}
        />
      )}
      <TextInput
        label="Before the offset"
        description="That record and later ones stay. Empty: all records go."
        placeholder="All records"
        inputMode="numeric"
        value={choice.before}
        error={choiceComplaint(choice)}
        onChange={(event) => {
          onChange({ ...choice, before: event.currentTarget.value });
        }}
      />
    </>
  );
}
