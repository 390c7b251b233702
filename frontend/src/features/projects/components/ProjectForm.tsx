import { TextInput } from "@mantine/core";
import { useForm } from "@mantine/form";
import { notifications } from "@mantine/notifications";
import type { UseMutationResult } from "@tanstack/react-query";
import type { ReactElement } from "react";
import { MutationForm } from "@/components/MutationForm";
import type { NewProject, Project } from "@/lib/api/types";
import { useCreateProject, useUpdateProject } from "../api/projects";

/** The form of a new project. */
export function NewProjectForm({ onDone }: { onDone: () => void }): ReactElement {
  return (
    <Fields
      mutation={useCreateProject()}
      name=""
      action="Create project"
      failure="The project was not created"
      onDone={onDone}
    />
  );
}

/** The form that renames a project. */
export function EditProjectForm({
  project,
  onDone,
}: {
  project: Project;
  onDone: () => void;
}): ReactElement {
  return (
    <Fields
      mutation={useUpdateProject(project)}
      name={project.name}
      action="Save"
      failure="The project was not saved"
      onDone={onDone}
    />
  );
}

interface Props {
  mutation: UseMutationResult<Project, Error, NewProject>;
  name: string;
  action: string;
  failure: string;
  onDone: () => void;
}

function Fields({ mutation, name, action, failure, onDone }: Props): ReactElement {
  const form = useForm({
    initialValues: { name },
    validate: { name: (value) => (value.trim() ? null : "Name the project") },
  });
  return (
    <MutationForm
      form={form}
      mutation={mutation}
      input={(values) => ({ name: values.name.trim() })}
      onDone={(project) => {
        notifications.show({ message: `${project.name} is there` });
        onDone();
      }}
      onCancel={onDone}
      action={action}
      failure={failure}
    >
      <TextInput
        label="Name"
        description="A team, an application, an environment"
        autoComplete="off"
        data-autofocus
        {...form.getInputProps("name")}
      />
    </MutationForm>
  );
}
