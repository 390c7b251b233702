import {
  PasswordInput,
  type PasswordInputProps,
  TextInput,
  type TextInputProps,
} from "@mantine/core";
import type { ReactElement } from "react";

export const enteredPassword = (password: string): string | null =>
  password ? null : "Enter your password";

export const enteredCode = (code: string): string | null => (code.trim() ? null : "Enter a code");

/** The field of the person's password. */
export function PasswordField(props: PasswordInputProps): ReactElement {
  return <PasswordInput label="Password" autoComplete="current-password" {...props} />;
}

/** The field of a code of the second factor. */
export function CodeField(props: TextInputProps): ReactElement {
  return (
    <TextInput
      label="Code"
      description="Of the app, or a recovery code"
      autoComplete="one-time-code"
      spellCheck={false}
      {...props}
    />
  );
}
