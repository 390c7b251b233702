import { MultiSelect, Radio, Select, Stack, Text, TextInput } from "@mantine/core";
import type { ReactElement } from "react";
import { InstantInput } from "@/components/InstantInput";
import type { Group } from "@/lib/api/types";
import { RESET_KINDS, type ResetChoice, resetComplaint, type ResetKind } from "../reset";

interface Props {
  choice: ResetChoice;
  onChange: (choice: ResetChoice) => void;
  group: Group;
  /** The cluster's other groups. */
  others: string[];
}

/** The first step of a reset: the topics, and the place from which the group shall go on. */
export function ResetChooser({ choice, onChange, group, others }: Props): ReactElement {
  const topics = [...new Set(group.partitions.map((partition) => partition.topic))].sort();
  const needsText = ["offset", "shift"].includes(choice.kind);
  return (
    <>
      <Text size="sm" c="dimmed">
        The group goes on reading from its offsets. Nothing is changed before you have seen the
        effect.
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
          onChange({ ...choice, kind: kind as ResetKind, value: "" });
        }}
      >
        <Stack gap={8} mt={6}>
          {RESET_KINDS.map(({ value, label }) => (
            <Radio key={value} value={value} label={label} size="xs" />
          ))}
        </Stack>
      </Radio.Group>
      {choice.kind === "group" && (
        <Select
          label="Group"
          placeholder="Choose one"
          searchable
          nothingFoundMessage="No such group"
          data={others}
          value={choice.value || null}
          onChange={(value) => {
            onChange({ ...choice, value: value ?? "" });
          }}
        />
      )}
      {choice.kind === "timestamp" && (
        <InstantInput
          label="Time"
          labelled
          value={choice.value || undefined}
          onChange={(value) => {
            onChange({ ...choice, value: value ?? "" });
          }}
        />
      )}
      {needsText && (
        <TextInput
          label="Number"
          inputMode="numeric"
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
