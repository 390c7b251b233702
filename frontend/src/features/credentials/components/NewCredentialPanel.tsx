import { Radio, Select, Stack, TextInput } from "@mantine/core";
import { useForm } from "@mantine/form";
import type { ReactElement, ReactNode } from "react";
import { MutationForm } from "@/components/MutationForm";
import { SecretOnce } from "@/components/SecretOnce";
import type { CredentialRole } from "@/lib/api/types";
import { expiresAt, LIVES } from "@/lib/overlaps";
import { useCreateCredential } from "../api/credentials";
import { ROLES, secretsOf } from "../roles";

interface Props {
  clusterId: string;
  onDone: () => void;
  /** A link to what to do next, shown with the secret. */
  afterwards?: ReactNode;
}

/** The form of a new credential. It shows the password once. */
export function NewCredentialPanel({ clusterId, onDone, afterwards }: Props): ReactElement {
  const create = useCreateCredential(clusterId);
  const form = useForm({
    initialValues: { name: "", role: "full" as CredentialRole, life: "" },
    validate: { name: (name) => (name.trim() ? null : "Name the credential") },
  });
  if (create.data) {
    return (
      <SecretOnce values={secretsOf(create.data)} onDone={onDone}>
        <>{afterwards}</>
      </SecretOnce>
    );
  }
  return (
    <MutationForm
      form={form}
      mutation={create}
      input={({ name, role, life }) => ({ name, role, expires_at: expiresAt(life, new Date()) })}
      onCancel={onDone}
      action="Create credential"
      failure="The credential was not created"
    >
      <TextInput
        label="Name"
        description="Who uses it: one credential for each application"
        data-autofocus
        autoComplete="off"
        {...form.getInputProps("name")}
      />
      <Radio.Group label="Role" {...form.getInputProps("role")}>
        <Stack gap={10} mt={6}>
          {ROLES.map(({ value, label, grants }) => (
            <Radio key={value} value={value} label={label} description={grants} size="xs" />
          ))}
        </Stack>
      </Radio.Group>
      <Select
        label="Ends by itself"
        data={LIVES}
        allowDeselect={false}
        {...form.getInputProps("life")}
      />
    </MutationForm>
  );
}
