import { PasswordInput } from "@mantine/core";
import { useForm } from "@mantine/form";
import type { ReactElement } from "react";
import { MutationForm } from "@/components/MutationForm";
import { PASSWORD_MIN, passwordComplaint } from "@/lib/password";
import { useResetPassword } from "../api/safety";

interface Props {
  /** The token in the mail's link. */
  token: string;
  onDone: () => void;
}

/** The form that sets a new password by a mail's link. */
export function NewPasswordForm({ token, onDone }: Props): ReactElement {
  const reset = useResetPassword();
  const form = useForm({
    initialValues: { password: "" },
    validate: { password: passwordComplaint },
  });
  return (
    <MutationForm
      form={form}
      mutation={reset}
      input={({ password }) => ({ token, password })}
      onDone={onDone}
      action="Set the password"
      failure="The password was not set"
    >
      <PasswordInput
        label="New password"
        description={`At least ${String(PASSWORD_MIN)} characters`}
        autoComplete="new-password"
        autoFocus
        {...form.getInputProps("password")}
      />
    </MutationForm>
  );
}
