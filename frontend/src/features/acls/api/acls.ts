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
import type { Acl } from "@/lib/api/types";

/** The access rules of a cluster. */
export const aclsQuery = (clusterId: string) =>
  queryOptions({
    queryKey: keys.acls(clusterId),
    queryFn: async () =>
      (await allPages((cursor) =>
        body(
          api.GET("/api/v1/clusters/{cluster_id}/acls", {
            params: { path: { cluster_id: clusterId }, query: { cursor } },
          }),
        ),
      )) as Acl[],
    ...SLOW,
  });

/** Adds rules: all of them or none. */
export function useCreateAcls(clusterId: string): UseMutationResult<void, Error, Acl[]> {
  const client = useQueryClient();
  return useMutation({
    mutationFn: (items: Acl[]) =>
      done(
        api.POST("/api/v1/clusters/{cluster_id}/acls", {
          params: { path: { cluster_id: clusterId } },
          body: { items },
        }),
      ),
    onSuccess: () => client.invalidateQueries({ queryKey: keys.acls(clusterId) }),
  });
}

/** Deletes the rule with exactly these members. */
export function useDeleteAcl(clusterId: string): UseMutationResult<void, Error, Acl> {
  const client = useQueryClient();
  return useMutation({
    mutationFn: (acl: Acl) =>
      done(
        api.DELETE("/api/v1/clusters/{cluster_id}/acls", {
          params: { path: { cluster_id: clusterId }, query: filterOf(acl) },
        }),
      ),
    onSettled: () => client.invalidateQueries({ queryKey: keys.acls(clusterId) }),
  });
}

/** The members that name one rule, and nothing else that an answer may carry. */
function filterOf(acl: Acl): Acl {
  const { principal, resource_type, resource_name, pattern_type, operation, permission, host } =
    acl;
  return { principal, resource_type, resource_name, pattern_type, operation, permission, host };
}
