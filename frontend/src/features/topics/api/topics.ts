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

/**
 * The service reads all topics of a cluster at once, so one long page costs no more than a short
 * one.
 */
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

/** One topic with all of its configs: value, default, source and description. */
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

/** The partitions of a topic with their leaders. */
export const partitionsQuery = (clusterId: string, name: string) =>
  queryOptions({
    queryKey: keys.partitions(clusterId, name),
    queryFn: async () => {
      const page = await body(
        api.GET("/api/v1/clusters/{cluster_id}/topics/{name}/partitions", {
          params: { path: { cluster_id: clusterId, name } },
        }),
      );
      // The OpenAPI file describes one partition as the answer, but it is a page of them.
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
      // Only a request for several topics is answered with a page.
      return made as Topic;
    },
    onSuccess: () => client.invalidateQueries({ queryKey: keys.topics(clusterId) }),
  });
}

/** Sets configs of a topic. null resets a config to its default. */
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
    // Nothing waits for the list: until then the page would read the topic that is gone.
    onSuccess: () => void client.invalidateQueries({ queryKey: keys.topics(clusterId) }),
  });
}

/** Gives what forgets all that was read of a topic, once no page shows it any more. */
export function useForgetTopic(clusterId: string, name: string): () => void {
  const client = useQueryClient();
  return () => {
    client.removeQueries({ queryKey: keys.topic(clusterId, name) });
  };
}
