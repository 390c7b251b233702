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
import type { ClientQuota, ClientQuotaValues } from "@/lib/api/types";

/**
 * The service reads all quotas of a cluster at once, so one long page costs no more than a short
 * one.
 */
const LIST_LIMIT = 2_000;

/** The quotas of a cluster's clients, including those set by Kafka's tools. */
export const quotasQuery = (clusterId: string) =>
  queryOptions({
    queryKey: keys.quotas(clusterId),
    queryFn: () =>
      allPages((cursor) =>
        body(
          api.GET("/api/v1/clusters/{cluster_id}/quotas", {
            params: { path: { cluster_id: clusterId }, query: { cursor, limit: LIST_LIMIT } },
          }),
        ),
      ),
    ...SLOW,
  });

/** Sets the quotas of an entity. Quotas that are left out are removed. */
export function useSetQuota(
  clusterId: string,
): UseMutationResult<ClientQuota, Error, ClientQuotaValues> {
  const client = useQueryClient();
  return useMutation({
    mutationFn: (input: ClientQuotaValues) =>
      body(
        api.PUT("/api/v1/clusters/{cluster_id}/quotas", {
          params: { path: { cluster_id: clusterId } },
          body: input,
        }),
      ),
    onSettled: () => client.invalidateQueries({ queryKey: keys.quotas(clusterId) }),
  });
}

/** Removes all quotas of an entity. */
export function useRemoveQuota(clusterId: string): UseMutationResult<void, Error, ClientQuota> {
  const client = useQueryClient();
  return useMutation({
    mutationFn: ({ id }: ClientQuota) =>
      done(
        api.DELETE("/api/v1/clusters/{cluster_id}/quotas/{id}", {
          params: { path: { cluster_id: clusterId, id } },
        }),
      ),
    onSettled: () => client.invalidateQueries({ queryKey: keys.quotas(clusterId) }),
  });
}
