import { Button, PasswordInput, Stack, Text, TextInput } from "@mantine/core";
import { useForm } from "@mantine/form";
import { type ReactElement, useState } from "react";
import { ErrorPanel } from "@/components/ErrorPanel";
import { isCode } from "@/lib/api/client";
import { useSignIn } from "../api/session";
import { SignInLink } from "./SignInLink";

interface Props {
  /** The token of a mail's link that led here; empty without one. */
  link: string;
  onDone: () => void;
}

/** The form to sign in: address and password, then a code where the account has a second factor. */
export function SignInForm({ link, onDone }: Props): ReactElement {
  const signIn = useSignIn();
  const [asksCode, setAsksCode] = useState(false);
  const form = useForm({
    mode: "uncontrolled",
    initialValues: { email: "", password: "", code: "" },
    validate: {
      email: (value) => (value.includes("@") ? null : "Enter your mail address"),
      password: (value) => (value ? null : "Enter your password"),
      code: (value) => (asksCode && !value.trim() ? "Enter a code" : null),
    },
  });
  return (
    <form
      noValidate
      onSubmit={form.onSubmit(({ email, password, code }) => {
        const input = {
          ...{ email, password },
          ...(asksCode ? { code: code.trim() } : {}),
          ...(link ? { link } : {}),
        };
        signIn.mutate(input, {
          onSuccess: onDone,
          onError: (error) => {
            if (isCode(error, "code_required")) setAsksCode(true);
          },
        });
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
        {asksCode && (
          <>
            <TextInput
              label="Code"
              description="The six digits that your authenticator app shows, or a recovery code"
              autoComplete="one-time-code"
              autoFocus
              spellCheck={false}
              key={form.key("code")}
              {...form.getInputProps("code")}
            />
            <Text size="xs" c="dimmed">
              Neither app nor codes at hand? An owner of your organization can have the second
              factor reset by support.
            </Text>
          </>
        )}
        {signIn.error && !isCode(signIn.error, "code_required") && (
          <ErrorPanel error={signIn.error} what="You are not signed in" />
        )}
        {isCode(signIn.error, "too_many_requests") && (
          <SignInLink email={form.getValues().email.trim()} />
        )}
        <Button type="submit" size="sm" mt={4} loading={signIn.isPending}>
          Sign in
        </Button>
      </Stack>
    </form>
  );
}
