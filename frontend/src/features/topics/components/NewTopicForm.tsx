import { NumberInput, Select, TextInput } from "@mantine/core";
import { useForm } from "@mantine/form";
import type { ReactElement } from "react";
import { MutationForm } from "@/components/MutationForm";
import { useCreateTopic } from "../api/topics";
import { topicNameComplaint } from "../configs";

const PARTITIONS_MAX = 10_000;
const DAY_MS = 86_400_000;

const RETENTIONS = [
  { value: "", label: "The cluster's default (7 days)" },
  { value: String(DAY_MS / 24), label: "1 hour" },
  { value: String(DAY_MS), label: "1 day" },
  { value: String(3 * DAY_MS), label: "3 days" },
  { value: String(30 * DAY_MS), label: "30 days" },
  { value: "-1", label: "No limit" },
];

const CLEANUPS = [
  { value: "", label: "Delete old records (default)" },
  { value: "compact", label: "Compact: keep the last record of each key" },
  { value: "compact,delete", label: "Compact, and delete old records" },
];

interface Props {
  clusterId: string;
  onDone: (name: string) => void;
  onCancel: () => void;
}

/** The form of a new topic. It has only the configs that matter at the start. */
export function NewTopicForm({ clusterId, onDone, onCancel }: Props): ReactElement {
  const create = useCreateTopic(clusterId);
  const form = useForm({
    initialValues: { name: "", partitions: 3, retention: "", cleanup: "" },
    validate: {
      name: topicNameComplaint,
      partitions: (count) =>
        Number.isInteger(count) && count >= 1 && count <= PARTITIONS_MAX
          ? null
          : `1 to ${String(PARTITIONS_MAX)}`,
    },
  });
  return (
    <MutationForm
      form={form}
      mutation={create}
      input={({ name, partitions, retention, cleanup }) => {
        const chosen = { "retention.ms": retention, "cleanup.policy": cleanup };
        const configs = Object.fromEntries(Object.entries(chosen).filter(([, value]) => value));
        return { name, partitions, configs };
      }}
      onDone={(topic) => {
        onDone(topic.name);
      }}
      onCancel={onCancel}
      action="Create topic"
      failure="The topic was not created"
    >
      <TextInput
        label="Name"
        description="Letters, digits, dots, dashes and underscores"
        data-autofocus
        autoComplete="off"
        spellCheck={false}
        {...form.getInputProps("name")}
      />
      <NumberInput
        label="Partitions"
        description="How many consumers of a group can read at once. None can be removed."
        min={1}
        max={PARTITIONS_MAX}
        allowDecimal={false}
        {...form.getInputProps("partitions")}
      />
      <Select
        label="Retention"
        data={RETENTIONS}
        allowDeselect={false}
        {...form.getInputProps("retention")}
      />
      <Select
        label="Cleanup"
        data={CLEANUPS}
        allowDeselect={false}
        {...form.getInputProps("cleanup")}
      />
    </MutationForm>
  );
}
