import { Group, Select } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { type ReactElement, useState } from "react";
import { type Column, DataTable } from "@/components/DataTable";
import { ErrorPanel } from "@/components/ErrorPanel";
import { GuardedButton, RowButton } from "@/components/GuardedButton";
import { Section } from "@/components/Section";
import type { NewRoleBinding, ProjectRole, RoleBinding } from "@/lib/api/types";
import { roleLabel, ROLES } from "@/lib/roles";
import {
  roleBindingListQuery,
  useCreateRoleBinding,
  useDeleteRoleBinding,
} from "../api/roleBindings";

/** A person, a service account or a project on the other side of a role binding. */
export interface Other {
  id: string;
  label: string;
  /** The type of a person or a service account; undefined for projects. */
  type?: RoleBinding["principal_type"];
}

interface Props {
  /** This side of the role bindings: a person, a service account or a project. */
  of: { principal: RoleBinding["principal_type"]; id: string } | { project: string };
  /** The choices of the other side: projects for a person, people and accounts for a project. */
  others: readonly Other[];
  /** The noun of the other side, such as "Project". */
  label: string;
  refused: string | undefined;
}

const PROJECT_ROLES = ROLES.filter(({ value }) => value !== "member");

/**
 * The roles in projects of a person, an account or a project, with a form to add and remove them.
 */
export function RoleBindings({ of, others, label, refused }: Props): ReactElement {
  const { data, error, refetch } = useQuery(roleBindingListQuery);
  const create = useCreateRoleBinding();
  const remove = useDeleteRoleBinding();
  const [other, setOther] = useState<string | null>(null);
  const [role, setRole] = useState<ProjectRole>("developer");
  const shown = data?.filter((binding) =>
    "project" in of ? binding.project_id === of.project : binding.principal_id === of.id,
  );
  const otherOf = (binding: RoleBinding): string =>
    "project" in of ? binding.principal_id : binding.project_id;
  const nameOf = (binding: RoleBinding): string =>
    others.find(({ id }) => id === otherOf(binding))?.label ?? otherOf(binding);
  const give = (): void => {
    const chosen = others.find(({ id }) => id === other);
    if (!chosen) return;
    const input: NewRoleBinding =
      "project" in of
        ? {
            principal_type: chosen.type ?? "user",
            principal_id: chosen.id,
            project_id: of.project,
            role,
          }
        : { principal_type: of.principal, principal_id: of.id, project_id: chosen.id, role };
    create.mutate(input, {
      onSuccess: () => {
        setOther(null);
      },
    });
  };
  const failed = create.error ?? remove.error;
  return (
    <Section
      title="Roles in projects"
      lead="A role here adds to the one in the organization, for the project's clusters alone."
    >
      {error && !data && (
        <ErrorPanel
          error={error}
          what="The roles could not be read"
          onRetry={() => void refetch()}
        />
      )}
      {(data === undefined || (shown?.length ?? 0) > 0) && (
        <DataTable
          label="Roles in projects"
          columns={columnsOf(label, nameOf, refused, remove.mutate)}
          rows={shown}
          rowId={(binding) => binding.id}
        />
      )}
      {failed && <ErrorPanel error={failed} what="The role was not changed" />}
      <Group gap="xs" mt="sm" align="flex-end">
        <Select
          size="xs"
          flex={1}
          label={label}
          placeholder="Choose one"
          searchable
          data={others.map(({ id, label: text }) => ({ value: id, label: text }))}
          value={other}
          onChange={setOther}
          disabled={refused !== undefined}
        />
        <Select
          size="xs"
          w={130}
          label="Role"
          data={PROJECT_ROLES.map(({ value, label: text }) => ({ value, label: text }))}
          allowDeselect={false}
          value={role}
          onChange={(picked) => {
            setRole((picked ?? "developer") as ProjectRole);
          }}
          disabled={refused !== undefined}
        />
        <GuardedButton
          refused={refused}
          disabled={other === null}
          loading={create.isPending}
          onClick={give}
        >
          Give the role
        </GuardedButton>
      </Group>
    </Section>
  );
}

function columnsOf(
  label: string,
  nameOf: (binding: RoleBinding) => string,
  refused: string | undefined,
  onRemove: (binding: RoleBinding) => void,
): Column<RoleBinding>[] {
  return [
    { id: "other", header: label, cell: nameOf },
    { id: "role", header: "Role", width: 110, cell: (binding) => roleLabel(binding.role) },
    {
      id: "take",
      header: "",
      align: "right",
      width: 80,
      cell: (binding) => (
        <RowButton
          refused={refused}
          aria-label={`Take ${roleLabel(binding.role)} away: ${nameOf(binding)}`}
          onClick={() => {
            onRemove(binding);
          }}
        >
          Take away
        </RowButton>
      ),
    },
  ];
}
