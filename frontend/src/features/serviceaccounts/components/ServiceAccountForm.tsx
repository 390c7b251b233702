import { Select, Switch, TextInput } from "@mantine/core";
import { useForm } from "@mantine/form";
import { notifications } from "@mantine/notifications";
import { type UseMutationResult, useQuery } from "@tanstack/react-query";
import type { ReactElement } from "react";
import { MutationForm } from "@/components/MutationForm";
import { sessionQuery } from "@/lib/api/session";
import type { NewServiceAccount, Role, ServiceAccount } from "@/lib/api/types";
import { rolesUpTo } from "@/lib/roles";
import { useCreateServiceAccount, useUpdateServiceAccount } from "../api/serviceAccounts";

interface Values {
  name: string;
  description: string;
  role: Role;
  disabled: boolean;
}

function created({ name, description, role }: Values): NewServiceAccount {
  return { name: name.trim(), description: description.trim(), role };
}

/** The form of a new service account. */
export function NewServiceAccountForm({ onDone }: { onDone: () => void }): ReactElement {
  return (
    <Fields
      mutation={useCreateServiceAccount()}
      initial={{ name: "", description: "", role: "developer", disabled: false }}
      input={created}
      action="Create account"
      failure="The account was not created"
      onDone={onDone}
    />
  );
}

interface EditProps {
  account: ServiceAccount;
  refused: string | undefined;
  onDone: () => void;
}

/** The form that changes or disables a service account. */
export function EditServiceAccountForm({ account, refused, onDone }: EditProps): ReactElement {
  const { name, description, role, disabled } = account;
  return (
    <Fields
      mutation={useUpdateServiceAccount(account)}
      initial={{ name, description, role, disabled }}
      input={(values) => ({ ...created(values), disabled: values.disabled })}
      action="Save"
      failure="The account was not saved"
      refused={refused}
      edits
      onDone={onDone}
    />
  );
}

interface Props<Input> {
  mutation: UseMutationResult<ServiceAccount, Error, Input>;
  initial: Values;
  input: (values: Values) => Input;
  action: string;
  failure: string;
  refused?: string;
  /** Whether the account exists, and so can be disabled. */
  edits?: boolean;
  onDone: () => void;
}

function Fields<Input>(props: Props<Input>): ReactElement {
  const { mutation, initial, input, action, failure, refused, edits, onDone } = props;
  const { data: session } = useQuery(sessionQuery);
  const form = useForm({
    initialValues: initial,
    validate: { name: (name) => (name.trim() ? null : "Name the account") },
  });
  return (
    <MutationForm
      form={form}
      mutation={mutation}
      input={input}
      onDone={(account) => {
        notifications.show({ message: `${account.name} is saved` });
        onDone();
      }}
      onCancel={onDone}
      action={action}
      failure={failure}
      refused={refused}
    >
      <TextInput
        label="Name"
        description="The program: deploy-pipeline, terraform"
        autoComplete="off"
        data-autofocus
        {...form.getInputProps("name")}
      />
      <TextInput label="Description" autoComplete="off" {...form.getInputProps("description")} />
      <Select
        label="Role in the organization"
        description="Its keys have it, and the roles in projects"
        data={rolesUpTo(session?.organization?.role)}
        allowDeselect={false}
        {...form.getInputProps("role")}
      />
      {edits && (
        <Switch
          label="Disabled"
          description="None of its keys is let in while this is on"
          {...form.getInputProps("disabled", { type: "checkbox" })}
        />
      )}
    </MutationForm>
  );
}
