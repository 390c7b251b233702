import { Button, PasswordInput, Stack, TextInput } from "@mantine/core";
import { useForm } from "@mantine/form";
import type { ReactElement } from "react";
import { ErrorPanel } from "@/components/ErrorPanel";
import { useSignIn } from "../api/session";

/** Address and password. `onDone` runs with the session read. */
export function SignInForm({ onDone }: { onDone: () => void }): ReactElement {
  const signIn = useSignIn();
  const form = useForm({
    mode: "uncontrolled",
    initialValues: { email: "", password: "" },
    validate: {
      email: (value) => (value.includes("@") ? null : "Enter your mail address"),
      password: (value) => (value ? null : "Enter your password"),
    },
  });
  return (
    <form
      noValidate
      onSubmit={form.onSubmit((values) => {
        signIn.mutate(values, { onSuccess: onDone });
      })}
    >
      <Stack gap="sm">
        <TextInput
          label="Mail address"
          type="email"
          autoComplete="username"
          autoFocus
          key={form.key("email")}
          {...form.getInputProps("email")}
        />
        <PasswordInput
          label="Password"
          autoComplete="current-password"
          key={form.key("password")}
          {...form.getInputProps("password")}
        />
        {signIn.error && <ErrorPanel error={signIn.error} what="You are not signed in" />}
        <Button type="submit" size="sm" mt={4} loading={signIn.isPending}>
          Sign in
        </Button>
      </Stack>
    </form>
  );
}
