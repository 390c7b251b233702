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

/** All of a cluster's quotas are one read of its metadata. */
const LIST_LIMIT = 2_000;

/** The quotas of a cluster's clients, also those that Kafka's tools set. */
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

/** Gives somebody these quotas and no others. */
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

/** Takes all quotas of somebody away. */
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
