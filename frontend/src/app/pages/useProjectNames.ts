import { useQuery } from "@tanstack/react-query";
import { useMemo } from "react";
import { projectListQuery } from "@/lib/api/projects";

/** What projects are called, by their id; undefined where there is only one, or none is read. */
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
