import { useMutation, type UseMutationResult, useQueryClient } from "@tanstack/react-query";
import { api, body } from "@/lib/api/client";
import { keys } from "@/lib/api/keys";
import type { DeleteRecords, LowWatermark, SkipDamaged, SkippedBatch } from "@/lib/api/types";

/** The records to delete. `look`: only compute what would be deleted. */
export interface Deletion extends DeleteRecords {
  look: boolean;
}

/** Deletes the oldest records of partitions, or computes what would be deleted. */
export function useDeleteRecords(
  clusterId: string,
  name: string,
): UseMutationResult<LowWatermark[], Error, Deletion> {
  const client = useQueryClient();
  return useMutation({
    mutationFn: async ({ partitions, look }: Deletion) => {
      const answer = await body(
        api.POST("/api/v1/clusters/{cluster_id}/topics/{name}:delete-records", {
          // Only a broker can delete records, so a sleeping cluster is woken for it.
          params: {
            path: { cluster_id: clusterId, name },
            query: { wake: true, validate_only: look },
          },
          body: { partitions },
        }),
      );
      return answer.items;
    },
    onSettled: async (_, __, { look }) => {
      if (look) return;
      await client.invalidateQueries({ queryKey: keys.topic(clusterId, name) });
      await client.invalidateQueries({ queryKey: keys.groups(clusterId) });
    },
  });
}

/** Deletes a partition's records up to a damaged batch, or says what would be deleted. */
export function useSkipDamaged(
  clusterId: string,
  name: string,
): UseMutationResult<SkippedBatch, Error, SkipDamaged> {
  const client = useQueryClient();
  return useMutation({
    mutationFn: (batch: SkipDamaged) =>
      body(
        api.POST("/api/v1/clusters/{cluster_id}/topics/{name}:skip-damaged", {
          // Only a broker can delete records, so a sleeping cluster is woken for it.
          params: { path: { cluster_id: clusterId, name }, query: { wake: true } },
          body: batch,
        }),
      ),
    onSettled: async (_, __, { confirm }) => {
      if (!confirm) return;
      await client.invalidateQueries({ queryKey: keys.topic(clusterId, name) });
      await client.invalidateQueries({ queryKey: keys.groups(clusterId) });
    },
  });
}
