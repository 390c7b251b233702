import { Select, TextInput } from "@mantine/core";
import { useForm } from "@mantine/form";
import type { ReactElement } from "react";
import { CodeBlock } from "@/components/CodeBlock";
import { MutationForm } from "@/components/MutationForm";
import { SecretOnce } from "@/components/SecretOnce";
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
    <MutationForm
      form={form}
      mutation={create}
      input={(values) => values}
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
      <Select label="Role" data={ROLES} allowDeselect={false} {...form.getInputProps("role")} />
    </MutationForm>
  );
}
