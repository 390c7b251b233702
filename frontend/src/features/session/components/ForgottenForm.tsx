import { TextInput } from "@mantine/core";
import { useForm } from "@mantine/form";
import type { ReactElement } from "react";
import { MutationForm } from "@/components/MutationForm";
import { Note, NoteMore } from "@/components/Note";
import { useForgottenPassword } from "../api/safety";

/** The form that requests a mail with a link to set a new password. */
export function ForgottenForm(): ReactElement {
  const forgotten = useForgottenPassword();
  const form = useForm({
    initialValues: { email: "" },
    validate: { email: (value) => (/^\S+@\S+$/.test(value) ? null : "Enter a mail address") },
  });
  if (forgotten.isSuccess) {
    return (
      <Note tone="running">
        <strong>Look into your mail.</strong> If {form.values.email} has an account, a link is on
        its way. It works once.
        <NoteMore>Nothing there after a few minutes? Look among the spam, or ask again.</NoteMore>
      </Note>
    );
  }
  return (
    <MutationForm
      form={form}
      mutation={forgotten}
      input={({ email }) => ({ email: email.trim() })}
      action="Send the link"
      failure="No mail was sent"
    >
      <TextInput
        label="Mail address"
        type="email"
        autoComplete="username"
        autoFocus
        {...form.getInputProps("email")}
      />
    </MutationForm>
  );
}
