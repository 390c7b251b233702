import { Select, TextInput } from "@mantine/core";
import { useForm } from "@mantine/form";
import { useQuery } from "@tanstack/react-query";
import type { ReactElement } from "react";
import { MutationForm } from "@/components/MutationForm";
import { sessionQuery } from "@/lib/api/session";
import type { Role } from "@/lib/api/types";
import { expiresAt, LIVES } from "@/lib/overlaps";
import { rolesUpTo } from "@/lib/roles";
import { useCreateApiKey } from "../api/apiKeys";
import { ApiKeySecret } from "./ApiKeySecret";

interface Props {
  /** The service accounts to choose from. */
  accounts: { id: string; name: string }[];
  onDone: () => void;
}

/** The form of a new API key. It shows the key's secret once. */
export function NewApiKeyPanel({ accounts, onDone }: Props): ReactElement {
  const create = useCreateApiKey();
  const { data: session } = useQuery(sessionQuery);
  const form = useForm({
    initialValues: { name: "", account: "", role: "developer" as Role, life: "" },
    validate: { name: (name) => (name.trim() ? null : "Name the key") },
  });
  if (create.data) return <ApiKeySecret secret={create.data.secret} onDone={onDone} />;
  return (
    <MutationForm
      form={form}
      mutation={create}
      input={({ name, account, role, life }) => ({
        name: name.trim(),
        expires_at: expiresAt(life, new Date()),
        ...(account ? { service_account_id: account } : { role }),
      })}
      onCancel={onDone}
      action="Create key"
      failure="The key was not created"
    >
      <TextInput
        label="Name"
        description="What will use it: a pipeline, a script, a tool"
        data-autofocus
        autoComplete="off"
        {...form.getInputProps("name")}
      />
      <Select
        label="Of"
        data={[
          { value: "", label: "No service account: a role of its own" },
          ...accounts.map(({ id, name }) => ({ value: id, label: `Service account ${name}` })),
        ]}
        allowDeselect={false}
        {...form.getInputProps("account")}
      />
      {form.values.account === "" && (
        <Select
          label="Role"
          data={rolesUpTo(session?.organization?.role)}
          allowDeselect={false}
          {...form.getInputProps("role")}
        />
      )}
      <Select
        label="Ends by itself"
        data={LIVES}
        allowDeselect={false}
        {...form.getInputProps("life")}
      />
    </MutationForm>
  );
}
