import {
  queryOptions,
  useMutation,
  type UseMutationResult,
  useQueryClient,
} from "@tanstack/react-query";
import { notifications } from "@mantine/notifications";
import { api, body, done } from "@/lib/api/client";
import { keys } from "@/lib/api/keys";
import { allPages } from "@/lib/api/pages";
import { LIVE } from "@/lib/api/polling";
import { explain } from "@/lib/api/problem";
import type { PlannedOffset, ResetRequest } from "@/lib/api/types";

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

/** One group with its members and its lag by partition. */
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

async function resetOffsets(
  clusterId: string,
  group: string,
  request: ResetRequest,
): Promise<PlannedOffset[]> {
  const answer = await body(
    api.POST("/api/v1/clusters/{cluster_id}/groups/{group}/reset-offsets", {
      // Only a broker can change offsets, so a sleeping cluster is woken for it.
      params: { path: { cluster_id: clusterId, group }, query: { wake: true } },
      body: request,
    }),
  );
  return answer.items;
}

/**
 * Plans a reset (`dry_run`) or does it. The answer has the old and new offset of every partition.
 */
export function useResetOffsets(
  clusterId: string,
  group: string,
): UseMutationResult<PlannedOffset[], Error, ResetRequest> {
  const client = useQueryClient();
  return useMutation({
    mutationFn: (request: ResetRequest) => resetOffsets(clusterId, group, request),
    onSettled: (_, __, request) =>
      request.dry_run ? undefined : client.invalidateQueries({ queryKey: keys.groups(clusterId) }),
  });
}

/** Deletes a group that has no members, with its offsets. */
export function useDeleteGroup(
  clusterId: string,
  group: string,
): UseMutationResult<void, Error, void> {
  const client = useQueryClient();
  return useMutation({
    mutationFn: () =>
      done(
        api.DELETE("/api/v1/clusters/{cluster_id}/groups/{group}", {
          params: { path: { cluster_id: clusterId, group }, query: { wake: true } },
        }),
      ),
    // Nothing waits for the list: until then the page would read the group that is gone.
    onSuccess: () => void client.invalidateQueries({ queryKey: keys.groupList(clusterId) }),
  });
}

/** Gives what forgets all that was read of a group, once no page shows it any more. */
export function useForgetGroup(clusterId: string, group: string): () => void {
  const client = useQueryClient();
  return () => {
    client.removeQueries({ queryKey: keys.group(clusterId, group) });
  };
}

/**
 * Restores a group's former offsets, and shows a notice of the result, since the person may have
 * left the page meanwhile.
 */
export function useUndoReset(clusterId: string, group: string): (requests: ResetRequest[]) => void {
  const client = useQueryClient();
  const undo = async (requests: ResetRequest[]): Promise<void> => {
    try {
      for (const request of requests) await resetOffsets(clusterId, group, request);
      notifications.show({ message: "The offsets are as they were" });
    } catch (error) {
      const { happened, next } = explain(error);
      notifications.show({ color: "red", title: "Not undone", message: `${happened} ${next}` });
    } finally {
      await client.invalidateQueries({ queryKey: keys.groups(clusterId) });
    }
  };
  return (requests) => void undo(requests);
}
