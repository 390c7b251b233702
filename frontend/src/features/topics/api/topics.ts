import {
  queryOptions,
  useMutation,
  type UseMutationResult,
  useQueryClient,
} from "@tanstack/react-query";
import { api, body, done } from "@/lib/api/client";
import { keys } from "@/lib/api/keys";
import { allPages } from "@/lib/api/pages";
import { LIVE } from "@/lib/api/polling";
import type { NewTopic, Page, Partition, Topic } from "@/lib/api/types";

/** A list of topics is one read of the metadata store, however long it is. */
const LIST_LIMIT = 2_000;

/** The topics of a cluster, by name. */
export const topicListQuery = (clusterId: string) =>
  queryOptions({
    queryKey: keys.topicList(clusterId),
    queryFn: () =>
      allPages((cursor) =>
        body(
          api.GET("/api/v1/clusters/{cluster_id}/topics", {
            params: { path: { cluster_id: clusterId }, query: { cursor, limit: LIST_LIMIT } },
          }),
        ),
      ),
    ...LIVE,
  });

/** One topic with all its configs: value, default, source, what each does. */
export const topicQuery = (clusterId: string, name: string) =>
  queryOptions({
    queryKey: keys.topic(clusterId, name),
    queryFn: () =>
      body(
        api.GET("/api/v1/clusters/{cluster_id}/topics/{name}", {
          params: { path: { cluster_id: clusterId, name } },
        }),
      ),
    ...LIVE,
  });

/** Which broker leads each partition. */
export const partitionsQuery = (clusterId: string, name: string) =>
  queryOptions({
    queryKey: keys.partitions(clusterId, name),
    queryFn: async () => {
      const page = await body(
        api.GET("/api/v1/clusters/{cluster_id}/topics/{name}/partitions", {
          params: { path: { cluster_id: clusterId, name } },
        }),
      );
      // The description tells of one item; what is answered is a page of them.
      return (page as unknown as Page<Partition>).items;
    },
    ...LIVE,
  });

export function useCreateTopic(clusterId: string): UseMutationResult<Topic, Error, NewTopic> {
  const client = useQueryClient();
  return useMutation({
    mutationFn: async (input: NewTopic) => {
      const made = await body(
        api.POST("/api/v1/clusters/{cluster_id}/topics", {
          params: { path: { cluster_id: clusterId } },
          body: input,
        }),
      );
      // Only who asks for several gets a page of them.
      return made as Topic;
    },
    onSuccess: () => client.invalidateQueries({ queryKey: keys.topics(clusterId) }),
  });
}

/** Sets configs; null takes one back to its default. */
export function useUpdateConfigs(
  clusterId: string,
  name: string,
): UseMutationResult<Topic, Error, Record<string, string | null>> {
  const client = useQueryClient();
  return useMutation({
    mutationFn: (configs: Record<string, string | null>) =>
      body(
        api.PATCH("/api/v1/clusters/{cluster_id}/topics/{name}", {
          params: { path: { cluster_id: clusterId, name } },
          body: { configs },
        }),
      ),
    onSettled: () => client.invalidateQueries({ queryKey: keys.topics(clusterId) }),
  });
}

/** Adds partitions up to `count`. */
export function useAddPartitions(
  clusterId: string,
  name: string,
): UseMutationResult<Topic, Error, number> {
  const client = useQueryClient();
  return useMutation({
    mutationFn: (count: number) =>
      body(
        api.POST("/api/v1/clusters/{cluster_id}/topics/{name}/partitions", {
          params: { path: { cluster_id: clusterId, name } },
          body: { count },
        }),
      ),
    onSettled: () => client.invalidateQueries({ queryKey: keys.topics(clusterId) }),
  });
}

export function useDeleteTopic(
  clusterId: string,
  name: string,
): UseMutationResult<void, Error, void> {
  const client = useQueryClient();
  return useMutation({
    mutationFn: () =>
      done(
        api.DELETE("/api/v1/clusters/{cluster_id}/topics/{name}", {
          params: { path: { cluster_id: clusterId, name } },
        }),
      ),
    onSuccess: () => {
      client.removeQueries({ queryKey: keys.topic(clusterId, name) });
      return client.invalidateQueries({ queryKey: keys.topics(clusterId) });
    },
  });
}
