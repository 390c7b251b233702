import { Checkbox, Switch, Textarea } from "@mantine/core";
import { useForm } from "@mantine/form";
import { notifications } from "@mantine/notifications";
import type { ReactElement } from "react";
import { MutationForm } from "@/components/MutationForm";
import type { Organization } from "@/lib/api/types";
import { useUpdateOrganization } from "../api/organization";
import { networksComplaint, networksOf } from "../addresses";

interface Props {
  organization: Organization;
  refused: string | undefined;
}

/** The form of the security rules: allowed networks, and whether a second factor is required. */
export function SecurityForm({ organization, refused }: Props): ReactElement {
  const update = useUpdateOrganization();
  const form = useForm({
    initialValues: {
      addresses: organization.allowed_addresses.join("\n"),
      required: organization.two_factor_required,
      force: false,
    },
    validate: { addresses: networksComplaint },
  });
  return (
    <MutationForm
      form={form}
      mutation={update}
      input={({ addresses, required, force }) => ({
        change: { allowed_addresses: networksOf(addresses), two_factor_required: required },
        force,
      })}
      onDone={() => {
        notifications.show({ message: "The rules hold from now on" });
        form.resetDirty();
      }}
      action="Save"
      failure="The rules were not saved"
      refused={refused}
      disabled={!form.isDirty()}
    >
      <Switch
        label="Two-factor sign-in is required"
        description="Members without a second factor see nothing here until they have one"
        disabled={refused !== undefined}
        {...form.getInputProps("required", { type: "checkbox" })}
      />
      <Textarea
        label="Allowed addresses"
        description="Networks that people and keys may come from, one a line. Empty: from anywhere"
        placeholder="203.0.113.0/24"
        autosize
        minRows={2}
        maxRows={12}
        disabled={refused !== undefined}
        styles={{ input: { fontFamily: "var(--mantine-font-family-monospace)" } }}
        {...form.getInputProps("addresses")}
      />
      {update.error && (
        <Checkbox
          size="xs"
          label="Save it even if it shuts me out"
          {...form.getInputProps("force", { type: "checkbox" })}
        />
      )}
    </MutationForm>
  );
}
