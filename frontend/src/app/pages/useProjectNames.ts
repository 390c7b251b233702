import { useQuery } from "@tanstack/react-query";
import { useMemo } from "react";
import { projectListQuery } from "@/lib/api/projects";

/** Returns the names of projects by id; undefined while they are not read or there is only one. */
export function useProjectNames(): ReadonlyMap<string, string> | undefined {
  const { data: projects } = useQuery(projectListQuery);
  return useMemo(
    () =>
      projects && projects.length > 1
        ? new Map(projects.map(({ id, name }) => [id, name]))
        : undefined,
    [projects],
  );
}
