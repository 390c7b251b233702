import { Select, Text, TextInput } from "@mantine/core";
import { useForm } from "@mantine/form";
import { notifications } from "@mantine/notifications";
import { useQuery } from "@tanstack/react-query";
import type { ReactElement } from "react";
import { MutationForm } from "@/components/MutationForm";
import { sessionQuery } from "@/lib/api/session";
import type { Role } from "@/lib/api/types";
import { rolesUpTo } from "@/lib/roles";
import { useInvite } from "../api/members";

/** The form that invites a person with a role. */
export function InviteForm({ onDone }: { onDone: () => void }): ReactElement {
  const invite = useInvite();
  const { data: session } = useQuery(sessionQuery);
  const form = useForm({
    initialValues: { email: "", role: "developer" as Role },
    validate: { email: (value) => (/^\S+@\S+$/.test(value) ? null : "Enter a mail address") },
  });
  return (
    <MutationForm
      form={form}
      mutation={invite}
      input={({ email, role }) => ({ email: email.trim(), role })}
      onDone={({ email }) => {
        notifications.show({ message: `A mail with the link is on its way to ${email}` });
        onDone();
      }}
      onCancel={onDone}
      action="Send the invitation"
      failure="The invitation was not sent"
    >
      <TextInput
        label="Mail address"
        type="email"
        autoComplete="off"
        data-autofocus
        {...form.getInputProps("email")}
      />
      <Select
        label="Role"
        data={rolesUpTo(session?.organization?.role)}
        allowDeselect={false}
        {...form.getInputProps("role")}
      />
      <Text size="xs" c="dimmed">
        The link in the mail works for 7 days. A member sees nothing but the projects in which you
        give a role, once they have joined.
      </Text>
    </MutationForm>
  );
}
