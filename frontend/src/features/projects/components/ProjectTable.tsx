import { Link } from "@tanstack/react-router";
import { type ReactElement, useMemo, useState } from "react";
import { ConfirmRow } from "@/components/ConfirmRow";
import { type Column, DataTable } from "@/components/DataTable";
import { RowButton } from "@/components/GuardedButton";
import { Moment } from "@/components/Moment";
import type { Project } from "@/lib/api/types";
import { useRefusal } from "@/lib/permissions";
import { useDeleteProject } from "../api/projects";

interface Props {
  projects: readonly Project[] | undefined;
  /** How many clusters lie in each. */
  clusters: ReadonlyMap<string, number>;
}

/** Projects with how much is in them; each opens at the side. */
export function ProjectTable({ projects, clusters }: Props): ReactElement {
  const [asked, setAsked] = useState<Project>();
  const remove = useDeleteProject();
  const refused = useRefusal("manage");
  const columns = useMemo(() => columnsOf(setAsked, refused, clusters), [refused, clusters]);
  return (
    <>
      <DataTable
        label="Projects"
        columns={columns}
        rows={projects}
        rowId={(project) => project.id}
        initialSort={[{ id: "name", desc: false }]}
      />
      <ConfirmRow
        row={asked}
        onClose={() => {
          setAsked(undefined);
        }}
        mutation={remove}
        name={(project) => project.name}
        title="Delete the project"
        done="is deleted"
      >
        The roles in it end. No cluster is in it, so nothing else changes. This cannot be undone.
      </ConfirmRow>
    </>
  );
}

/** Why a project stays; undefined where it may go. */
function keptBecause(project: Project, clusters: number): string | undefined {
  if (project.default) return "The default project stays: clusters go there that name none.";
  return clusters > 0 ? "Move its clusters to another project first." : undefined;
}

function columnsOf(
  onRemove: (project: Project) => void,
  refused: string | undefined,
  clusters: Props["clusters"],
): Column<Project>[] {
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
      cell: (project) => clusters.get(project.id) ?? 0,
    },
    {
      id: "created",
      header: "Created",
      width: 130,
      sortBy: (project) => project.created_at,
      cell: (project) => <Moment at={project.created_at} />,
    },
    {
      id: "delete",
      header: "",
      align: "right",
      width: 100,
      cell: (project) => (
        <RowButton
          refused={refused ?? keptBecause(project, clusters.get(project.id) ?? 0)}
          aria-label={`Delete ${project.name}`}
          onClick={() => {
            onRemove(project);
          }}
        >
          Delete
        </RowButton>
      ),
    },
  ];
}
