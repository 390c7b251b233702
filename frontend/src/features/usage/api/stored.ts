import { queryOptions } from "@tanstack/react-query";
import { api, body } from "@/lib/api/client";
import { keys } from "@/lib/api/keys";
import { SLOW } from "@/lib/api/polling";

/** How many bytes topics hold now: all, those of one cluster, or one topic. */
export const storedQuery = (of: { cluster?: string; topic?: string } = {}) =>
  queryOptions({
    queryKey: keys.usageStored(of),
    queryFn: () => {
      const query = { cluster_id: of.cluster, topic_id: of.topic || undefined };
      return body(api.GET("/api/v1/usage/stored", { params: { query } }));
    },
    ...SLOW,
  });
