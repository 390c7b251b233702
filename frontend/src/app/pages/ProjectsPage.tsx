import { Stack } from "@mantine/core";
import { IconPlus } from "@tabler/icons-react";
import { useQuery } from "@tanstack/react-query";
import { type ReactElement, useMemo } from "react";
import { Empty } from "@/components/Empty";
import { GuardedButton } from "@/components/GuardedButton";
import { Listed } from "@/components/Listed";
import { Note } from "@/components/Note";
import { PageHead } from "@/components/PageHead";
import { SidePanel } from "@/components/SidePanel";
import { clusterListQuery } from "@/features/clusters/api/clusters";
import { memberListQuery } from "@/features/members/api/members";
import { EditProjectForm, NewProjectForm } from "@/features/projects/components/ProjectForm";
import { ProjectTable } from "@/features/projects/components/ProjectTable";
import { type Other, RoleBindings } from "@/features/rolebindings/components/RoleBindings";
import { serviceAccountListQuery } from "@/features/serviceaccounts/api/serviceAccounts";
import { projectListQuery } from "@/lib/api/projects";
import type { Project } from "@/lib/api/types";
import { useProjectRefusal, useRefusal } from "@/lib/permissions";
import { usePanel } from "./usePanel";

/** Projects: clusters that belong together, and who has a role in them. */
export function ProjectsPage(): ReactElement {
  const panel = usePanel("new");
  const refused = useRefusal("manage");
  const projects = useQuery(projectListQuery);
  const clusters = useQuery(clusterListQuery).data;
  const counts = useMemo(() => {
    if (clusters === undefined) return undefined;
    const byProject = new Map<string, number>();
    for (const { project_id: id } of clusters) {
      byProject.set(id, (byProject.get(id) ?? 0) + 1);
    }
    return byProject;
  }, [clusters]);
  const opened = projects.data?.find(({ id }) => id === panel.name);
  return (
    <>
      <PageHead
        title="Projects"
        lead="Clusters that belong together. A role in a project holds for its clusters alone."
        actions={
          <GuardedButton
            refused={refused}
            leftSection={<IconPlus size={14} />}
            onClick={panel.open}
          >
            New project
          </GuardedButton>
        }
      />
      <Listed
        query={projects}
        what="The projects could not be read"
        empty={
          <Empty title="You have no project">
            You have no role in a project yet. Ask the person who invited you for one.
          </Empty>
        }
      >
        {(rows) => <ProjectTable projects={rows} clusters={counts} />}
      </Listed>
      <SidePanel opened={panel.opened && !refused} onClose={panel.close} title="New project">
        <NewProjectForm onDone={panel.close} />
      </SidePanel>
      <SidePanel
        opened={opened !== undefined}
        onClose={panel.close}
        title={opened?.name ?? "Project"}
        size={560}
      >
        {opened && <ProjectDetails project={opened} onDone={panel.close} />}
      </SidePanel>
    </>
  );
}

function ProjectDetails({
  project,
  onDone,
}: {
  project: Project;
  onDone: () => void;
}): ReactElement {
  const refused = useProjectRefusal("manage", project.id);
  const members = useQuery(memberListQuery).data ?? [];
  const accounts = useQuery(serviceAccountListQuery).data ?? [];
  const others: Other[] = [
    ...members.map(({ user_id: id, email }) => ({ id, label: email, type: "user" as const })),
    ...accounts.map(({ id, name }) => ({
      id,
      label: `${name} (service account)`,
      type: "service_account" as const,
    })),
  ];
  return (
    <Stack gap="xl">
      {refused ? (
        <Note tone="quiet">{refused}</Note>
      ) : (
        <EditProjectForm key={project.generation} project={project} onDone={onDone} />
      )}
      <RoleBindings
        of={{ project: project.id }}
        others={others}
        label="Person or service account"
        refused={refused}
      />
    </Stack>
  );
}
