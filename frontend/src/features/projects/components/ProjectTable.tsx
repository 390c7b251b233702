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
  /** The number of clusters by project id; undefined while it is not known. */
  clusters: ReadonlyMap<string, number> | undefined;
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
        keptBecause: (project) => keptBecause(project, countOf(project, clusters)),
        effect: () =>
          "The roles in it end. No cluster is in it, so nothing else changes. " +
          "This cannot be undone.",
      }}
    />
  );
}

const countOf = ({ id }: Project, clusters: Props["clusters"]): number | undefined =>
  clusters && (clusters.get(id) ?? 0);

/** Returns why a project cannot be deleted; undefined where it can. */
function keptBecause(project: Project, clusters: number | undefined): string | undefined {
  if (project.default)
    return "The default project stays: it takes the clusters that name no project.";
  if (clusters === undefined) return "Whether clusters are in it is not known yet.";
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
      sortBy: (project) => countOf(project, clusters) ?? 0,
      cell: (project) => {
        const count = countOf(project, clusters);
        return count === undefined ? "–" : formatCount(count);
      },
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
