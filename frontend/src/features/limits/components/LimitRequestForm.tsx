import { NumberInput, Textarea } from "@mantine/core";
import { useForm } from "@mantine/form";
import { notifications } from "@mantine/notifications";
import type { ReactElement } from "react";
import { MutationForm } from "@/components/MutationForm";
import type { Limit } from "@/lib/api/types";
import { useRequestLimit } from "../api/limits";

interface Props {
  limit: Limit;
  onDone: () => void;
}

/** Asks for more, with the reason. */
export function LimitRequestForm({ limit, onDone }: Props): ReactElement {
  const request = useRequestLimit();
  const form = useForm({
    initialValues: { wanted: limit.limit * 2, reason: "" },
    validate: {
      wanted: (value) =>
        Number.isInteger(value) && value > limit.limit
          ? null
          : `More than ${String(limit.limit)} ${limit.unit}`,
      reason: (value) => (value.trim() ? null : "Say what it is for"),
    },
  });
  return (
    <MutationForm
      form={form}
      mutation={request}
      input={({ wanted, reason }) => ({ limit: limit.name, wanted, reason: reason.trim() })}
      onDone={() => {
        notifications.show({ message: "It is asked for. The answer will stand here." });
        onDone();
      }}
      onCancel={onDone}
      action="Ask for it"
      failure="It was not asked for"
    >
      <NumberInput
        label={`Wanted, ${limit.unit}`}
        description={`At most ${String(limit.limit)} now`}
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
