import { Button, Group, Radio, Stack, TextInput } from "@mantine/core";
import { useForm } from "@mantine/form";
import type { ReactElement, ReactNode } from "react";
import { ErrorPanel } from "@/components/ErrorPanel";
import { SecretOnce } from "@/components/SecretOnce";
import { formErrors } from "@/lib/api/problem";
import type { CredentialRole } from "@/lib/api/types";
import { useCreateCredential } from "../api/credentials";
import { ROLES } from "../roles";

interface Props {
  clusterId: string;
  onDone: () => void;
  /** What to do next with the secret: a link to the snippets. */
  afterwards?: ReactNode;
}

/** Makes a credential, then shows its password this once. */
export function NewCredentialPanel({ clusterId, onDone, afterwards }: Props): ReactElement {
  const create = useCreateCredential(clusterId);
  const form = useForm({
    initialValues: { name: "", role: "full" as CredentialRole },
    validate: { name: (name) => (name.trim() ? null : "Name the credential") },
  });
  if (create.data) {
    const { username, password, mechanism } = create.data;
    return (
      <SecretOnce
        values={[
          ["User name", username],
          ["Password", password],
          ["Mechanism", mechanism],
        ]}
        onDone={onDone}
      >
        <>{afterwards}</>
      </SecretOnce>
    );
  }
  return (
    <form
      onSubmit={form.onSubmit((values) => {
        create.mutate(values, {
          onError: (error) => {
            form.setErrors(formErrors(error));
          },
        });
      })}
    >
      <Stack gap="md">
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
        {create.error && <ErrorPanel error={create.error} what="The credential was not created" />}
        <Group justify="flex-end" gap="xs">
          <Button variant="default" onClick={onDone}>
            Cancel
          </Button>
          <Button type="submit" loading={create.isPending}>
            Create credential
          </Button>
        </Group>
      </Stack>
    </form>
  );
}
