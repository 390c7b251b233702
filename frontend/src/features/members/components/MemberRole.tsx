import { Select } from "@mantine/core";
import { useForm } from "@mantine/form";
import { notifications } from "@mantine/notifications";
import { useQuery } from "@tanstack/react-query";
import type { ReactElement } from "react";
import { MutationForm } from "@/components/MutationForm";
import { sessionQuery } from "@/lib/api/session";
import type { Member } from "@/lib/api/types";
import { useRefusalOver } from "@/lib/permissions";
import { ROLES, rolesUpTo } from "@/lib/roles";
import { useUpdateMember } from "../api/members";

/** The form of a member's role in the organization. */
export function MemberRole({ member }: { member: Member }): ReactElement {
  const update = useUpdateMember(member.id);
  const { data: session } = useQuery(sessionQuery);
  const refused = useRefusalOver()(member.role);
  const mine = rolesUpTo(session?.organization?.role);
  const above = !mine.some(({ value }) => value === member.role);
  const form = useForm({ initialValues: { role: member.role } });
  return (
    <MutationForm
      form={form}
      mutation={update}
      input={(values) => values}
      onDone={() => {
        notifications.show({ message: `${member.email} has the role now` });
        form.resetDirty();
      }}
      action="Save"
      failure="The role was not changed"
      refused={refused}
      disabled={!form.isDirty()}
    >
      <Select
        label="Role in the organization"
        data={above ? ROLES.map(({ value, label }) => ({ value, label })) : mine}
        allowDeselect={false}
        disabled={refused !== undefined}
        {...form.getInputProps("role")}
      />
    </MutationForm>
  );
}
