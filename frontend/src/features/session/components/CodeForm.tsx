import { Text } from "@mantine/core";
import { useForm } from "@mantine/form";
import type { UseMutationResult } from "@tanstack/react-query";
import type { ReactElement, ReactNode } from "react";
import { MutationForm } from "@/components/MutationForm";
import { CodeField, enteredCode } from "./ProofFields";

interface Props<Result> {
  mutation: UseMutationResult<Result, Error, { code: string }>;
  onDone?: () => void;
  onCancel: () => void;
  action: string;
  failure: string;
  /** What the change does. */
  children: ReactNode;
}

/** Asks for a code before a change of the second factor. */
export function CodeForm<Result>(props: Props<Result>): ReactElement {
  const { mutation, onDone, onCancel, action, failure, children } = props;
  const form = useForm({
    initialValues: { code: "" },
    validate: { code: enteredCode },
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
      <CodeField data-autofocus {...form.getInputProps("code")} />
    </MutationForm>
  );
}
