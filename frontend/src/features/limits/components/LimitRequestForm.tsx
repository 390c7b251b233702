import { NumberInput, Textarea } from "@mantine/core";
import { useForm } from "@mantine/form";
import { notifications } from "@mantine/notifications";
import type { ReactElement } from "react";
import { MutationForm } from "@/components/MutationForm";
import type { Limit } from "@/lib/api/types";
import { useRequestLimit } from "../api/limits";
import { formatLimit } from "../words";

interface Props {
  limit: Limit;
  /** The cluster that needs more; without it, the organization or all of its clusters. */
  clusterId?: string;
  onDone: () => void;
}

/** Asks for more, with the reason. */
export function LimitRequestForm({ limit, clusterId, onDone }: Props): ReactElement {
  const request = useRequestLimit();
  const form = useForm({
    initialValues: { wanted: limit.limit * 2, reason: "" },
    validate: {
      wanted: (value) =>
        Number.isInteger(value) && value > limit.limit
          ? null
          : `More than ${formatLimit(limit.limit, limit.unit)}`,
      reason: (value) => (value.trim() ? null : "Say what it is for"),
    },
  });
  return (
    <MutationForm
      form={form}
      mutation={request}
      input={({ wanted, reason }) => ({
        limit: limit.name,
        cluster_id: clusterId,
        wanted,
        reason: reason.trim(),
      })}
      onDone={() => {
        notifications.show({
          message: "It is asked for. The answer will stand in Settings, Limits.",
        });
        onDone();
      }}
      onCancel={onDone}
      action="Ask for it"
      failure="It was not asked for"
    >
      <NumberInput
        label={`Wanted, ${limit.unit}`}
        description={`At most ${formatLimit(limit.limit, limit.unit)} now`}
        min={1}
        allowDecimal={false}
        data-autofocus
        {...form.getInputProps("wanted")}
      />
      <Textarea
        label="What for"
        description="What will run, and from when"
        autosize
        minRows={3}
        maxLength={2000}
        {...form.getInputProps("reason")}
      />
    </MutationForm>
  );
}
