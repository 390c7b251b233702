import { Button, Group as Row, Stack } from "@mantine/core";
import { notifications } from "@mantine/notifications";
import { type ReactElement, useState } from "react";
import { ConfirmByName } from "@/components/ConfirmByName";
import { ErrorPanel } from "@/components/ErrorPanel";
import { Note, NoteMore } from "@/components/Note";
import type { Group, SkippedBatch } from "@/lib/api/types";
import { formatCount, formatNumber } from "@/lib/format/bytes";
import { big } from "@/lib/format/whole";
import { useSkipDamaged } from "../api/records";
import { DeletionPreview } from "./DeletionPreview";

interface Props {
  clusterId: string;
  topic: string;
  partition: number;
  firstOffset: string;
  /** The cluster's groups, to name those that have not read the records yet. */
  groups: readonly Group[];
  onDone: () => void;
}

/** Deletes a partition's records up to a damaged batch: first shows what goes, then asks. */
export function SkipDamaged(props: Props): ReactElement {
  const { clusterId, topic, partition, firstOffset, groups, onDone } = props;
  const skip = useSkipDamaged(clusterId, topic);
  const [plan, setPlan] = useState<SkippedBatch>();
  const [asking, setAsking] = useState(false);
  const batch = { partition, first_offset: firstOffset };
  const apply = (): void => {
    const onSuccess = ({ next_offset }: SkippedBatch): void => {
      const message = `Partition ${String(partition)} begins at ${formatCount(next_offset)}`;
      notifications.show({ message });
      onDone();
    };
    skip.mutate({ ...batch, confirm: true }, { onSuccess });
  };
  if (plan === undefined) {
    return (
      <Stack gap="md">
        <Note tone="failed">
          <strong>
            The batch at offset {formatCount(firstOffset)} of partition {partition} cannot be
            decoded.
          </strong>
          <NoteMore>
            Consumers may stop at it. They go on once the partition begins behind it: then the batch
            and all records before it are deleted. Nothing is deleted before you have seen what
            goes.
          </NoteMore>
        </Note>
        {skip.error && <ErrorPanel error={skip.error} what="The effect could not be computed" />}
        <Row justify="flex-end">
          <Button
            loading={skip.isPending}
            onClick={() => {
              skip.mutate({ ...batch, confirm: false }, { onSuccess: setPlan });
            }}
          >
            Show what will be deleted
          </Button>
        </Row>
      </Stack>
    );
  }
  const { log_start: start, next_offset: next, records_before: good } = plan;
  const deletion = {
    partition,
    low_watermark: next,
    deleted_offsets: String(big(next) - big(start)),
  };
  const action = `Delete ${formatNumber(good, "good record")} and the batch`;
  return (
    <Stack gap="md">
      <Note tone="failed">
        <strong>
          {big(good) === 0n
            ? "No good record is deleted with the batch."
            : `Up to ${formatNumber(good, "good record")} before the batch are deleted with it.`}
        </strong>
      </Note>
      <DeletionPreview clusterId={clusterId} topic={topic} plan={[deletion]} groups={groups} />
      <Row justify="flex-end">
        <Button
          color="red"
          onClick={() => {
            setAsking(true);
          }}
        >
          {action}
        </Button>
      </Row>
      <ConfirmByName
        opened={asking}
        onClose={() => {
          setAsking(false);
          skip.reset();
        }}
        onConfirm={apply}
        name={topic}
        title="Delete up to the damaged batch"
        action={action}
        failure="Nothing was deleted"
        pending={skip.isPending}
        error={skip.error}
      >
        They are deleted at once and for good. Records behind the batch stay.
      </ConfirmByName>
    </Stack>
  );
}
