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
  /** The cluster that needs a higher limit; without it, the organization or all of its clusters. */
  clusterId?: string;
  onDone: () => void;
}

/** The form that requests a higher limit, with a reason. */
export function LimitRequestForm({ limit, clusterId, onDone }: Props): ReactElement {
  const request = useRequestLimit();
  const form = useForm({
    initialValues: { wanted: limit.limit * 2, reason: "" },
    validate: {
      wanted: (value) =>
        Number.isInteger(value) && value > limit.limit
          ? null
          : `More than ${formatLimit(limit.limit, limit.unit)}`,
      reason: (value) => (value.trim() ? null : "Say what it is needed for"),
    },
  });
  return (
    <MutationForm
      form={form}
      mutation={request}
      input={(values) => ({
        limit: limit.name,
        cluster_id: clusterId,
        wanted: values.wanted,
        reason: values.reason.trim(),
      })}
      onDone={() => {
        notifications.show({
          message: "The request is sent. The answer will appear in Settings, Limits.",
        });
        onDone();
      }}
      onCancel={onDone}
      action="Send the request"
      failure="The request was not sent"
    >
      <NumberInput
        label={`New limit, ${limit.unit}`}
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
