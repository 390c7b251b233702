import { Link } from "@tanstack/react-router";
import { type ReactElement, useMemo } from "react";
import type { Column } from "@/components/DataTable";
import { Moment } from "@/components/Moment";
import { RemovableTable } from "@/components/RemovableTable";
import type { Project } from "@/lib/api/types";
import { formatCount } from "@/lib/format/bytes";
import { useRefusal } from "@/lib/permissions";
import { useDeleteProject } from "../api/projects";

interface Props {
  projects: readonly Project[] | undefined;
  /** The number of clusters by project id. */
  clusters: ReadonlyMap<string, number>;
}

/** The projects with their numbers of clusters. A click opens a project in the side panel. */
export function ProjectTable({ projects, clusters }: Props): ReactElement {
  const columns = useMemo(() => columnsOf(clusters), [clusters]);
  return (
    <RemovableTable
      label="Projects"
      columns={columns}
      rows={projects}
      removal={{
        mutation: useDeleteProject(),
        name: (project) => project.name,
        label: "Delete",
        title: "Delete the project",
        done: "is deleted",
        refused: useRefusal("manage"),
        keptBecause: (project) => keptBecause(project, clusters.get(project.id) ?? 0),
        effect: () =>
          "The roles in it end. No cluster is in it, so nothing else changes. " +
          "This cannot be undone.",
      }}
    />
  );
}

/** Returns why a project cannot be deleted; undefined where it can. */
function keptBecause(project: Project, clusters: number): string | undefined {
  if (project.default)
    return "The default project stays: it takes the clusters that name no project.";
  return clusters > 0 ? "Move its clusters to another project first." : undefined;
}

function columnsOf(clusters: Props["clusters"]): Column<Project>[] {
  return [
    {
      id: "name",
      header: "Name",
      sortBy: (project) => project.name,
      cell: (project) => (
        <>
          <Link to="/access/projects" search={{ panel: project.id }}>
            {project.name}
          </Link>
          {project.default && <span style={{ color: "var(--quiet)" }}> default</span>}
        </>
      ),
    },
    {
      id: "clusters",
      header: "Clusters",
      align: "right",
      width: 110,
      sortBy: (project) => clusters.get(project.id) ?? 0,
      cell: (project) => formatCount(clusters.get(project.id) ?? 0),
    },
    {
      id: "created",
      header: "Created",
      width: 130,
      sortBy: (project) => project.created_at,
      cell: (project) => <Moment at={project.created_at} />,
    },
  ];
}
