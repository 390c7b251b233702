import { Button, Group, Stack } from "@mantine/core";
import { notifications } from "@mantine/notifications";
import { type ReactElement, useState } from "react";
import { ErrorPanel } from "@/components/ErrorPanel";
import { Note } from "@/components/Note";
import { offerUndo } from "@/components/offerUndo";
import type { Group as ConsumerGroup, PlannedOffset } from "@/lib/api/types";
import { useResetOffsets, useUndoReset } from "../api/groups";
import { type ResetChoice, resetComplaint, resetRequest, undoRequests } from "../reset";
import { ResetChooser } from "./ResetChooser";
import { ResetPreview } from "./ResetPreview";

interface Props {
  clusterId: string;
  group: ConsumerGroup;
  /** The cluster's other groups. */
  others: string[];
  onDone: () => void;
}

/** The three steps of a reset: choose, see the plan for each partition, apply. It can be undone. */
export function ResetPanel({ clusterId, group, others, onDone }: Props): ReactElement {
  const reset = useResetOffsets(clusterId, group.group);
  const undo = useUndoReset(clusterId, group.group);
  const [choice, setChoice] = useState<ResetChoice>({ kind: "earliest", value: "", topics: [] });
  const [plan, setPlan] = useState<PlannedOffset[]>();
  const preview = (): void => {
    reset.mutate(resetRequest(choice, true), { onSuccess: setPlan });
  };
  const apply = (): void => {
    const onSuccess = (done: PlannedOffset[]): void => {
      sayDone(done, () => {
        undo(undoRequests(done));
      });
      onDone();
    };
    reset.mutate(resetRequest(choice, false), { onSuccess });
  };
  return (
    <Stack gap="md">
      {group.members.length > 0 && (
        <Note tone="waking">
          Kafka resets the offsets of a group only while none of its consumers is connected. Stop
          them first: {String(group.members.length)} are connected now.
        </Note>
      )}
      {plan ? (
        <ResetPreview plan={plan} />
      ) : (
        <ResetChooser choice={choice} onChange={setChoice} group={group} others={others} />
      )}
      {reset.error && <ErrorPanel error={reset.error} what="The offsets were not changed" />}
      {plan ? (
        <Group justify="space-between" gap="xs">
          <Button
            variant="default"
            onClick={() => {
              setPlan(undefined);
              reset.reset();
            }}
          >
            Back
          </Button>
          <Button onClick={apply} loading={reset.isPending}>
            Apply to {plan.length === 1 ? "one partition" : `${String(plan.length)} partitions`}
          </Button>
        </Group>
      ) : (
        <Group justify="flex-end">
          <Button
            onClick={preview}
            loading={reset.isPending}
            disabled={resetComplaint(choice) !== null}
          >
            See what would change
          </Button>
        </Group>
      )}
    </Stack>
  );
}

function sayDone(done: readonly PlannedOffset[], undo: () => void): void {
  const id = "offsets are reset";
  const title = "The offsets are set";
  if (undoRequests(done).length > 0) offerUndo({ id, title, undo });
  else notifications.show({ id, title, message: "Nothing had to move." });
}
