import { Alert, Button, Group, MultiSelect, Radio, Stack, Text, TextInput } from "@mantine/core";
import { notifications } from "@mantine/notifications";
import { type ReactElement, useState } from "react";
import { ErrorPanel } from "@/components/ErrorPanel";
import type { Group as ConsumerGroup, PlannedOffset } from "@/lib/api/types";
import { useResetOffsets } from "../api/groups";
import { RESET_KINDS, type ResetChoice, resetBody, resetComplaint } from "../reset";
import { ResetPreview } from "./ResetPreview";

interface Props {
  clusterId: string;
  group: ConsumerGroup;
  onDone: () => void;
}

/** Three steps: choose, see what would change in each partition, apply. */
export function ResetPanel({ clusterId, group, onDone }: Props): ReactElement {
  const reset = useResetOffsets(clusterId, group.group);
  const [choice, setChoice] = useState<ResetChoice>({ kind: "earliest", value: "", topics: [] });
  const [plan, setPlan] = useState<PlannedOffset[]>();
  const preview = (): void => {
    reset.mutate(resetBody(choice, true), { onSuccess: setPlan });
  };
  const apply = (): void => {
    const onSuccess = (done: PlannedOffset[]): void => {
      notifications.show({ message: `Offsets of ${String(done.length)} partitions are set` });
      onDone();
    };
    reset.mutate(resetBody(choice, false), { onSuccess });
  };
  return (
    <Stack gap="md">
      {group.members.length > 0 && (
        <Alert variant="light" color="yellow" title="The group has members">
          Kafka resets offsets of a group only while none of its consumers is connected. Stop them
          first; {String(group.members.length)} are connected now.
        </Alert>
      )}
      {plan ? (
        <ResetPreview plan={plan} />
      ) : (
        <Chooser choice={choice} onChange={setChoice} group={group} />
      )}
      {reset.error && <ErrorPanel error={reset.error} what="The offsets were not changed" />}
      <Group justify="space-between" gap="xs">
        {plan ? (
          <Button
            variant="default"
            onClick={() => {
              setPlan(undefined);
              reset.reset();
            }}
          >
            Back
          </Button>
        ) : (
          <span />
        )}
        {plan ? (
          <Button onClick={apply} loading={reset.isPending}>
            Apply to {String(plan.length)} partitions
          </Button>
        ) : (
          <Button
            onClick={preview}
            loading={reset.isPending}
            disabled={resetComplaint(choice) !== null}
          >
            See what would change
          </Button>
        )}
      </Group>
    </Stack>
  );
}

interface ChooserProps {
  choice: ResetChoice;
  onChange: (choice: ResetChoice) => void;
  group: ConsumerGroup;
}

function Chooser({ choice, onChange, group }: ChooserProps): ReactElement {
  const topics = [...new Set(group.partitions.map((partition) => partition.topic))].sort();
  const needsValue = choice.kind !== "earliest" && choice.kind !== "latest";
  return (
    <>
      <Text size="sm" c="dimmed">
        The group goes on reading from where its offsets stand. Nothing is changed before you have
        seen the effect.
      </Text>
      <MultiSelect
        label="Topics"
        placeholder={choice.topics.length === 0 ? "All that the group has read" : undefined}
        data={topics}
        value={choice.topics}
        onChange={(picked) => {
          onChange({ ...choice, topics: picked });
        }}
      />
      <Radio.Group
        label="Go on from"
        value={choice.kind}
        onChange={(kind) => {
          onChange({ ...choice, kind: kind as ResetChoice["kind"], value: "" });
        }}
      >
        <Stack gap={8} mt={6}>
          {RESET_KINDS.map(({ value, label }) => (
            <Radio key={value} value={value} label={label} size="xs" />
          ))}
        </Stack>
      </Radio.Group>
      {needsValue && (
        <TextInput
          label={choice.kind === "timestamp" ? "Time, in your zone" : "Number"}
          type={choice.kind === "timestamp" ? "datetime-local" : "text"}
          step={1}
          value={choice.value}
          error={choice.value ? resetComplaint(choice) : null}
          onChange={(event) => {
            onChange({ ...choice, value: event.currentTarget.value });
          }}
        />
      )}
    </>
  );
}
