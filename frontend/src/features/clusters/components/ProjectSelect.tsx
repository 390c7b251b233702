import { Select } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import type { ReactElement, ReactNode } from "react";
import { projectListQuery } from "@/lib/api/projects";
import { useProjectsFor } from "@/lib/permissions";

interface Props {
  value: string;
  onChange: (value: string | null) => void;
  error?: ReactNode;
}

/** The field with the project of a cluster. It is empty where there is only one project. */
export function ProjectSelect({ value, onChange, error }: Props): ReactElement | null {
  const { data: all } = useQuery(projectListQuery);
  const open = useProjectsFor("write");
  const choices = (all ?? []).filter(
    (project) => project.id === value || open?.some(({ id }) => id === project.id),
  );
  if (choices.length < 2) return null;
  return (
    <Select
      label="Project"
      description="Moving it ends this project's roles for it, and begins those of the other"
      data={choices.map(({ id, name }) => ({ value: id, label: name }))}
      allowDeselect={false}
      searchable
      value={value}
      onChange={onChange}
      error={error}
    />
  );
}
