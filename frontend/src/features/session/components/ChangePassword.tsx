import { PasswordInput } from "@mantine/core";
import { useForm } from "@mantine/form";
import { notifications } from "@mantine/notifications";
import type { ReactElement } from "react";
import { MutationForm } from "@/components/MutationForm";
import { PASSWORD_MIN, passwordComplaint } from "@/lib/password";
import { useChangePassword } from "../api/safety";

/** Another password for somebody who knows the present one. */
export function ChangePassword(): ReactElement {
  const change = useChangePassword();
  const form = useForm({
    initialValues: { current_password: "", new_password: "" },
    validate: {
      current_password: (value) => (value ? null : "Enter the current password"),
      new_password: passwordComplaint,
    },
  });
  return (
    <MutationForm
      form={form}
      mutation={change}
      input={(values) => values}
      onDone={() => {
        notifications.show({ message: "The password is changed. All other sessions have ended." });
        form.reset();
      }}
      action="Change the password"
      failure="The password was not changed"
    >
      <PasswordInput
        label="Current password"
        autoComplete="current-password"
        {...form.getInputProps("current_password")}
      />
      <PasswordInput
        label="New password"
        description={`At least ${String(PASSWORD_MIN)} characters`}
        autoComplete="new-password"
        {...form.getInputProps("new_password")}
      />
    </MutationForm>
  );
}
