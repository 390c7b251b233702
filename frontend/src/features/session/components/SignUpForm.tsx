import { Button, PasswordInput, Stack, TextInput } from "@mantine/core";
import { useForm } from "@mantine/form";
import type { ReactElement } from "react";
import { ErrorPanel } from "@/components/ErrorPanel";
import { formErrors } from "@/lib/api/problem";
import { PASSWORD_MIN, passwordComplaint } from "@/lib/password";
import { useSignUp } from "../api/session";

/** The form to sign up, which makes an account, an organization and its first cluster. */
export function SignUpForm({ onDone }: { onDone: () => void }): ReactElement {
  const signUp = useSignUp();
  const form = useForm({
    mode: "uncontrolled",
    initialValues: { organization_name: "", email: "", password: "" },
    validate: {
      organization_name: (value) => (value.trim() ? null : "Name your organization"),
      email: (value) => (/^\S+@\S+$/.test(value) ? null : "Enter a mail address"),
      password: passwordComplaint,
    },
  });
  return (
    <form
      noValidate
      onSubmit={form.onSubmit((values) => {
        signUp.mutate(values, {
          onSuccess: onDone,
          onError: (error) => {
            form.setErrors(formErrors(error));
          },
        });
      })}
    >
      <Stack gap="sm">
        <TextInput
          label="Organization"
          autoComplete="organization"
          autoFocus
          key={form.key("organization_name")}
          {...form.getInputProps("organization_name")}
        />
        <TextInput
          label="Mail address"
          type="email"
          autoComplete="username"
          key={form.key("email")}
          {...form.getInputProps("email")}
        />
        <PasswordInput
          label="Password"
          description={`At least ${String(PASSWORD_MIN)} characters`}
          autoComplete="new-password"
          key={form.key("password")}
          {...form.getInputProps("password")}
        />
        {signUp.error && <ErrorPanel error={signUp.error} what="The account was not made" />}
        <Button type="submit" size="sm" mt={4} loading={signUp.isPending}>
          Sign up
        </Button>
      </Stack>
    </form>
  );
}
