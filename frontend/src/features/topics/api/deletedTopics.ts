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

/** The deleted topics that can be restored. */
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

/** The orphaned topics: those on storage that the cluster does not know, as after a restore. */
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

/** The topic to bring back, and its new name; "" for its own. */
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

/** Makes an orphaned topic one of the cluster's topics again. */
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

/** Purges a deleted topic: its records are deleted for good. */
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
