import { Text, TextInput } from "@mantine/core";
import { useForm } from "@mantine/form";
import type { UseMutationResult } from "@tanstack/react-query";
import type { ReactElement, ReactNode } from "react";
import { MutationForm } from "@/components/MutationForm";

interface Props<Result> {
  mutation: UseMutationResult<Result, Error, { code: string }>;
  onDone?: () => void;
  onCancel: () => void;
  action: string;
  failure: string;
  /** What will happen. */
  children: ReactNode;
}

/** Asks for a code before a change of what signing in asks for. */
export function CodeForm<Result>(props: Props<Result>): ReactElement {
  const { mutation, onDone, onCancel, action, failure, children } = props;
  const form = useForm({
    initialValues: { code: "" },
    validate: { code: (code) => (code.trim() ? null : "Enter a code") },
  });
  return (
    <MutationForm
      form={form}
      mutation={mutation}
      input={({ code }) => ({ code: code.trim() })}
      onDone={onDone}
      onCancel={onCancel}
      action={action}
      failure={failure}
    >
      <Text size="sm">{children}</Text>
      <TextInput
        label="Code"
        description="Of the app, or a recovery code"
        autoComplete="one-time-code"
        spellCheck={false}
        data-autofocus
        {...form.getInputProps("code")}
      />
    </MutationForm>
  );
}
