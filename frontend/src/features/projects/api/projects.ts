import { useMutation, type UseMutationResult, useQueryClient } from "@tanstack/react-query";
import { api, body, done } from "@/lib/api/client";
import { keys } from "@/lib/api/keys";
import type { NewProject, Project } from "@/lib/api/types";

export function useCreateProject(): UseMutationResult<Project, Error, NewProject> {
  const client = useQueryClient();
  return useMutation({
    mutationFn: (input: NewProject) => body(api.POST("/api/v1/projects", { body: input })),
    onSuccess: () => client.invalidateQueries({ queryKey: keys.projects }),
  });
}

/** Renames a project, unless somebody else changed it since it was read. */
export function useUpdateProject(project: Project): UseMutationResult<Project, Error, NewProject> {
  const client = useQueryClient();
  const header = { "If-Match": `"${String(project.generation)}"` };
  return useMutation({
    mutationFn: (change: NewProject) =>
      body(
        api.PATCH("/api/v1/projects/{id}", {
          params: { path: { id: project.id }, header },
          body: change,
        }),
      ),
    onSettled: () => client.invalidateQueries({ queryKey: keys.projects }),
  });
}

/** Deletes a project that has no clusters. */
export function useDeleteProject(): UseMutationResult<void, Error, Project> {
  const client = useQueryClient();
  return useMutation({
    mutationFn: ({ id }: Project) =>
      done(api.DELETE("/api/v1/projects/{id}", { params: { path: { id } } })),
    onSettled: () => client.invalidateQueries({ queryKey: keys.projects }),
  });
}
