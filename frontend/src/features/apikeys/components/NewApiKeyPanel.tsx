import { Button, Group, Select, Stack, TextInput } from "@mantine/core";
import { useForm } from "@mantine/form";
import type { ReactElement } from "react";
import { CodeBlock } from "@/components/CodeBlock";
import { ErrorPanel } from "@/components/ErrorPanel";
import { SecretOnce } from "@/components/SecretOnce";
import { formErrors } from "@/lib/api/problem";
import type { Role } from "@/lib/api/types";
import { useCreateApiKey } from "../api/apiKeys";

const ROLES: { value: Role; label: string }[] = [
  { value: "admin", label: "Admin: manages everything but money" },
  { value: "developer", label: "Developer: topics, groups, messages" },
  { value: "viewer", label: "Viewer: reads only" },
];

/** Makes an API key, then shows its secret this once. */
export function NewApiKeyPanel({ onDone }: { onDone: () => void }): ReactElement {
  const create = useCreateApiKey();
  const form = useForm({
    initialValues: { name: "", role: "admin" as Role },
    validate: { name: (name) => (name.trim() ? null : "Name the key") },
  });
  if (create.data) {
    const { secret } = create.data;
    const command = `curl -H 'Authorization: Bearer ${secret}' ${location.origin}/api/v1/clusters`;
    return (
      <SecretOnce values={[["Secret", secret]]} onDone={onDone}>
        <CodeBlock title="Try it" code={command} />
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
          description="What will use it: a pipeline, a script, a tool"
          data-autofocus
          autoComplete="off"
          {...form.getInputProps("name")}
        />
        <Select label="Role" data={ROLES} allowDeselect={false} {...form.getInputProps("role")} />
        {create.error && <ErrorPanel error={create.error} what="The key was not created" />}
        <Group justify="flex-end" gap="xs">
          <Button variant="default" onClick={onDone}>
            Cancel
          </Button>
          <Button type="submit" loading={create.isPending}>
            Create key
          </Button>
        </Group>
      </Stack>
    </form>
  );
}
