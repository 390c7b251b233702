import { PasswordInput, TextInput } from "@mantine/core";
import { useForm } from "@mantine/form";
import type { ReactElement } from "react";
import { MutationForm } from "@/components/MutationForm";
import type { Accepted } from "@/lib/api/types";
import { PASSWORD_MIN, passwordComplaint } from "@/lib/password";
import { useAcceptInvitation } from "../api/members";

interface Props {
  /** The token in the mail's link. */
  token: string;
  /** The address of the person who is signed in and joins; undefined where an account is made. */
  email: string | undefined;
  onDone: (accepted: Accepted) => void;
}

/** The form that accepts an invitation. */
export function AcceptForm({ token, email, onDone }: Props): ReactElement {
  const accept = useAcceptInvitation();
  const form = useForm({
    initialValues: { name: "", password: "" },
    validate: {
      password: (value) => (email === undefined ? passwordComplaint(value) : null),
    },
  });
  return (
    <MutationForm
      form={form}
      mutation={accept}
      input={({ name, password }) =>
        email === undefined ? { token, password, name: name.trim() } : { token }
      }
      onDone={onDone}
      action={email === undefined ? "Make an account and join" : `Join as ${email}`}
      failure="The invitation was not accepted"
    >
      {email === undefined && (
        <>
          <TextInput label="Your name" autoComplete="name" {...form.getInputProps("name")} />
          <PasswordInput
            label="Password"
            description={`At least ${String(PASSWORD_MIN)} characters`}
            autoComplete="new-password"
            {...form.getInputProps("password")}
          />
        </>
      )}
    </MutationForm>
  );
}
