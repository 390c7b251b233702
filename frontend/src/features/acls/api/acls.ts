import {
  queryOptions,
  useMutation,
  type UseMutationResult,
  useQueryClient,
} from "@tanstack/react-query";
import { api, body, done } from "@/lib/api/client";
import { keys } from "@/lib/api/keys";
import { allPages } from "@/lib/api/pages";
import { SLOW } from "@/lib/api/polling";
import type { Acl, AclDraft, TemplateRequest } from "@/lib/api/types";

/** The access rules of a cluster. */
export const aclsQuery = (clusterId: string) =>
  queryOptions({
    queryKey: keys.acls(clusterId),
    queryFn: () =>
      allPages((cursor) =>
        body(
          api.GET("/api/v1/clusters/{cluster_id}/acls", {
            params: { path: { cluster_id: clusterId }, query: { cursor } },
          }),
        ),
      ),
    ...SLOW,
  });

/** The templates of ACLs, with the rules that each is made of. */
export const aclTemplatesQuery = queryOptions({
  queryKey: keys.aclTemplates,
  queryFn: async () => (await body(api.GET("/api/v1/acl-templates"))).items,
  staleTime: Number.POSITIVE_INFINITY,
});

/** The new rules: listed one by one, or those of a template. */
export type NewAcls = { items: AclDraft[] } | { template: TemplateRequest };

/** Adds rules, all or none. */
export function useCreateAcls(clusterId: string): UseMutationResult<void, Error, NewAcls> {
  const client = useQueryClient();
  const params = { path: { cluster_id: clusterId } };
  return useMutation({
    mutationFn: (input: NewAcls) =>
      done(
        "template" in input
          ? api.POST("/api/v1/clusters/{cluster_id}/acls:apply-template", {
              params,
              body: input.template,
            })
          : api.POST("/api/v1/clusters/{cluster_id}/acls:batch", { params, body: input }),
      ),
    onSuccess: () => client.invalidateQueries({ queryKey: keys.acls(clusterId) }),
  });
}

/** Deletes one rule. */
export function useDeleteAcl(clusterId: string): UseMutationResult<void, Error, Acl> {
  const client = useQueryClient();
  return useMutation({
    mutationFn: ({ id }: Acl) =>
      done(
        api.DELETE("/api/v1/clusters/{cluster_id}/acls/{id}", {
          params: { path: { cluster_id: clusterId, id } },
        }),
      ),
    onSettled: () => client.invalidateQueries({ queryKey: keys.acls(clusterId) }),
  });
}
