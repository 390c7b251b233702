import {
  infiniteQueryOptions,
  queryOptions,
  useMutation,
  type UseMutationResult,
  useQueryClient,
} from "@tanstack/react-query";
import { api, body } from "@/lib/api/client";
import { keys } from "@/lib/api/keys";
import type { Message, MessageQuery, Produced, ProduceRequest } from "@/lib/api/types";

/** The place where reading begins. */
export type Start = Pick<
  MessageQuery,
  "from" | "partition" | "offset" | "timestamp" | "wake" | "filter"
>;

const PAGE_LIMIT = 100;

/** The pages of a topic's records. Reading joins no group and commits nothing. */
export const messagesQuery = (clusterId: string, topic: string, start: Start) =>
  infiniteQueryOptions({
    queryKey: keys.messages(clusterId, topic, start),
    queryFn: ({ pageParam }) =>
      body(
        api.GET("/api/v1/clusters/{cluster_id}/topics/{name}/messages", {
          params: {
            path: { cluster_id: clusterId, name: topic },
            query: { ...start, limit: PAGE_LIMIT, cursor: pageParam },
          },
        }),
      ),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (page) => page.next_cursor ?? undefined,
    staleTime: Number.POSITIVE_INFINITY,
  });

/** Where a record is in its topic. */
export type RecordPlace = Pick<Message, "partition" | "offset">;

/** One record with all bytes of its key, value and headers. */
export const wholeRecordQuery = (clusterId: string, topic: string, record: RecordPlace) => {
  const { partition, offset } = record;
  const start = { from: "offset", partition, offset, limit: 1, whole: true } as const;
  return queryOptions({
    queryKey: keys.messages(clusterId, topic, start),
    queryFn: async (): Promise<Message> => {
      const page = await body(
        api.GET("/api/v1/clusters/{cluster_id}/topics/{name}/messages", {
          params: { path: { cluster_id: clusterId, name: topic }, query: start },
        }),
      );
      // Retention or its owner may have deleted it since: then reading begins at a later one.
      const same = page.items.find((item) => item.offset === offset);
      if (!same) throw new Error("The record is no longer in the topic.");
      return same;
    },
    staleTime: Number.POSITIVE_INFINITY,
  });
};

/** Produces one record and waits until it is durable. */
export function useProduce(
  clusterId: string,
  topic: string,
): UseMutationResult<Produced, Error, ProduceRequest> {
  const client = useQueryClient();
  return useMutation({
    mutationFn: (input: ProduceRequest) =>
      body(
        api.POST("/api/v1/clusters/{cluster_id}/topics/{name}/messages", {
          // A person who produces intends to wake a sleeping cluster.
          params: { path: { cluster_id: clusterId, name: topic }, query: { wake: true } },
          body: input,
        }),
      ),
    onSuccess: async () => {
      const queryKey = [...keys.topic(clusterId, topic), "messages"];
      // A read that began before the record was written would otherwise replace the new data.
      await client.cancelQueries({ queryKey });
      await client.invalidateQueries({ queryKey });
    },
  });
}
