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

async function resetOffsets(
  clusterId: string,
  group: string,
  request: ResetRequest,
): Promise<PlannedOffset[]> {
  const answer = await body(
    api.POST("/api/v1/clusters/{cluster_id}/groups/{group}/reset-offsets", {
      // Offsets are the brokers' to change: a sleeping cluster is woken for it.
      params: { path: { cluster_id: clusterId, group }, query: { wake: true } },
      body: request,
    }),
  );
  return answer.items;
}

/** Plans a reset (`dry_run`) or does it. Answers every partition with before and after. */
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
    onSuccess: () => {
      client.removeQueries({ queryKey: keys.group(clusterId, group) });
      return client.invalidateQueries({ queryKey: keys.groupList(clusterId) });
    },
  });
}

/** Puts a group back to where it was, and says how that went: whoever asked may have moved on. */
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
