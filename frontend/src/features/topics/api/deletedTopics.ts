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
import type { DeletedTopic, Topic } from "@/lib/api/types";

const LIST_LIMIT = 2_000;

/** Topics that were deleted and can be restored. */
export const deletedTopicsQuery = (clusterId: string) =>
  queryOptions({
    queryKey: keys.deletedTopics(clusterId),
    queryFn: () =>
      allPages((cursor) =>
        body(
          api.GET("/api/v1/clusters/{cluster_id}/deleted-topics", {
            params: { path: { cluster_id: clusterId }, query: { cursor, limit: LIST_LIMIT } },
          }),
        ),
      ),
    ...SLOW,
  });

/** Topics on storage that the cluster does not know, for one after an older backup's return. */
export const orphanedTopicsQuery = (clusterId: string) =>
  queryOptions({
    queryKey: keys.orphanedTopics(clusterId),
    queryFn: () =>
      allPages((cursor) =>
        body(
          api.GET("/api/v1/clusters/{cluster_id}/orphaned-topics", {
            params: { path: { cluster_id: clusterId }, query: { cursor, limit: LIST_LIMIT } },
          }),
        ),
      ),
    ...SLOW,
  });

/** Which topic shall be one of the cluster's again, and under which name; "" for its own. */
export interface Return {
  id: string;
  name: string;
}

/** Restores a deleted topic with its records, configs and id. */
export function useUndeleteTopic(clusterId: string): UseMutationResult<Topic, Error, Return> {
  const client = useQueryClient();
  return useMutation({
    mutationFn: ({ id, name }: Return) =>
      body(
        api.POST("/api/v1/clusters/{cluster_id}/deleted-topics/{topic}:undelete", {
          params: { path: { cluster_id: clusterId, topic: id } },
          body: name ? { name } : {},
        }),
      ),
    onSettled: () => client.invalidateQueries({ queryKey: keys.topics(clusterId) }),
  });
}

/** Makes a topic that was found on storage one of the cluster's. */
export function useAttachTopic(clusterId: string): UseMutationResult<Topic, Error, Return> {
  const client = useQueryClient();
  return useMutation({
    mutationFn: ({ id, name }: Return) =>
      body(
        api.POST("/api/v1/clusters/{cluster_id}/orphaned-topics/{topic}:attach", {
          params: { path: { cluster_id: clusterId, topic: id } },
          body: name ? { name } : {},
        }),
      ),
    onSettled: () => client.invalidateQueries({ queryKey: keys.topics(clusterId) }),
  });
}

/** Gives up a deleted topic now: its records go for good. */
export function usePurgeTopic(clusterId: string): UseMutationResult<void, Error, DeletedTopic> {
  const client = useQueryClient();
  return useMutation({
    mutationFn: ({ id, name }: DeletedTopic) =>
      done(
        api.DELETE("/api/v1/clusters/{cluster_id}/deleted-topics/{topic}", {
          params: { path: { cluster_id: clusterId, topic: id }, query: { name } },
        }),
      ),
    onSettled: () => client.invalidateQueries({ queryKey: keys.deletedTopics(clusterId) }),
  });
}
