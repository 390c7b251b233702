import { Text } from "@mantine/core";
import { useForm } from "@mantine/form";
import type { UseMutationResult } from "@tanstack/react-query";
import type { ReactElement, ReactNode } from "react";
import { MutationForm } from "@/components/MutationForm";
import { CodeField, enteredCode, enteredPassword, PasswordField } from "./ProofFields";

interface Props<Result> {
  mutation: UseMutationResult<Result, Error, { password: string }>;
  onCancel: () => void;
  failure: string;
  /** Why the password is asked for. */
  children: ReactNode;
}

/** Asks for the password again before a change that nobody else at this browser may make. */
export function PasswordAgain<Result>(props: Props<Result>): ReactElement {
  const { mutation, onCancel, failure, children } = props;
  const form = useForm({
    initialValues: { password: "" },
    validate: { password: enteredPassword },
  });
  return (
    <MutationForm
      form={form}
      mutation={mutation}
      input={(values) => values}
      onCancel={onCancel}
      action="Go on"
      failure={failure}
    >
      <Text size="sm">{children}</Text>
      <PasswordField data-autofocus {...form.getInputProps("password")} />
    </MutationForm>
  );
}

interface WithCode<Result> {
  mutation: UseMutationResult<Result, Error, { password: string; code: string }>;
  onDone: () => void;
  onCancel: () => void;
  action: string;
  failure: string;
  /** What the change does. */
  children: ReactNode;
}

/** Asks for password and code before a protection is removed. */
export function PasswordAndCode<Result>(props: WithCode<Result>): ReactElement {
  const { mutation, onDone, onCancel, action, failure, children } = props;
  const form = useForm({
    initialValues: { password: "", code: "" },
    validate: { password: enteredPassword, code: enteredCode },
  });
  return (
    <MutationForm
      form={form}
      mutation={mutation}
      input={({ password, code }) => ({ password, code: code.trim() })}
      onDone={onDone}
      onCancel={onCancel}
      action={action}
      failure={failure}
    >
      <Text size="sm">{children}</Text>
      <PasswordField data-autofocus {...form.getInputProps("password")} />
      <CodeField {...form.getInputProps("code")} />
    </MutationForm>
  );
}
