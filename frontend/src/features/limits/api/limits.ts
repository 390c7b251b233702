import {
  queryOptions,
  useMutation,
  type UseMutationResult,
  useQueryClient,
} from "@tanstack/react-query";
import { api, body } from "@/lib/api/client";
import { keys } from "@/lib/api/keys";
import { allPages } from "@/lib/api/pages";
import { SLOW } from "@/lib/api/polling";
import type { LimitRequest, NewLimitRequest } from "@/lib/api/types";

/** All limits with their usage; with a cluster, those of the cluster as well. */
export const limitListQuery = (clusterId?: string) =>
  queryOptions({
    queryKey: keys.limits(clusterId),
    queryFn: () =>
      allPages((cursor) =>
        body(api.GET("/api/v1/limits", { params: { query: { cursor, cluster_id: clusterId } } })),
      ),
    ...SLOW,
  });

/** The requests for higher limits, with their answers. */
export const limitRequestListQuery = queryOptions({
  queryKey: keys.limitRequests,
  queryFn: () =>
    allPages((cursor) =>
      body(api.GET("/api/v1/limit-requests", { params: { query: { cursor } } })),
    ),
  ...SLOW,
});

export function useRequestLimit(): UseMutationResult<LimitRequest, Error, NewLimitRequest> {
  const client = useQueryClient();
  return useMutation({
    mutationFn: (input: NewLimitRequest) =>
      body(api.POST("/api/v1/limit-requests", { body: input })),
    onSuccess: () => client.invalidateQueries({ queryKey: keys.limitRequests }),
  });
}
