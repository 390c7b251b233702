import {
  queryOptions,
  useMutation,
  type UseMutationResult,
  useQueryClient,
} from "@tanstack/react-query";
import { api, body } from "@/lib/api/client";
import { keys } from "@/lib/api/keys";
import { allPages } from "@/lib/api/pages";
import { LIVE } from "@/lib/api/polling";
import type { PlannedOffset } from "@/lib/api/types";
import type { ResetBody } from "@/lib/api/schema";

/** The consumer groups of a cluster. */
export const groupListQuery = (clusterId: string) =>
  queryOptions({
    queryKey: keys.groupList(clusterId),
    queryFn: () =>
      allPages((cursor) =>
        body(
          api.GET("/api/v1/clusters/{cluster_id}/groups", {
            params: { path: { cluster_id: clusterId }, query: { cursor } },
          }),
        ),
      ),
    ...LIVE,
  });

/** One group with members, and its lag by partition. */
export const groupQuery = (clusterId: string, group: string) =>
  queryOptions({
    queryKey: keys.group(clusterId, group),
    queryFn: () =>
      body(
        api.GET("/api/v1/clusters/{cluster_id}/groups/{group}", {
          params: { path: { cluster_id: clusterId, group } },
        }),
      ),
    ...LIVE,
  });

/** Plans a reset (`dry_run`) or does it. Answers every partition with before and after. */
export function useResetOffsets(
  clusterId: string,
  group: string,
): UseMutationResult<PlannedOffset[], Error, ResetBody> {
  const client = useQueryClient();
  return useMutation({
    mutationFn: async (input: ResetBody) => {
      const answer = await body(
        api.POST("/api/v1/clusters/{cluster_id}/groups/{group}/reset-offsets", {
          params: { path: { cluster_id: clusterId, group } },
          body: input,
        }),
      );
      return answer.items;
    },
    onSettled: (_, __, input) =>
      input.dry_run ? undefined : client.invalidateQueries({ queryKey: keys.groups(clusterId) }),
  });
}
