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
import type { Cluster, ClusterChange, NewCluster, Operation } from "@/lib/api/types";

/** All clusters of the organization. */
export const clusterListQuery = queryOptions({
  queryKey: keys.clusterList,
  queryFn: () =>
    allPages((cursor) => body(api.GET("/api/v1/clusters", { params: { query: { cursor } } }))),
  ...LIVE,
});

/** One cluster with its present state. */
export const clusterQuery = (clusterId: string) =>
  queryOptions({
    queryKey: keys.cluster(clusterId),
    queryFn: () => body(api.GET("/api/v1/clusters/{id}", { params: { path: { id: clusterId } } })),
    ...LIVE,
  });

/** The regions in which clusters can be made. */
export const regionsQuery = queryOptions({
  queryKey: keys.regions,
  queryFn: async () => (await body(api.GET("/api/v1/regions"))).items,
  staleTime: 600_000,
});

export function useCreateCluster(): UseMutationResult<Operation, Error, NewCluster> {
  const client = useQueryClient();
  return useMutation({
    mutationFn: (input: NewCluster) => body(api.POST("/api/v1/clusters", { body: input })),
    onSuccess: () => client.invalidateQueries({ queryKey: keys.clusters }),
  });
}

/** Changes a cluster, unless somebody else changed it since `generation` was read. */
export function useUpdateCluster(
  cluster: Cluster,
): UseMutationResult<Cluster, Error, ClusterChange> {
  const client = useQueryClient();
  const etag = `"${String(cluster.generation)}"`;
  return useMutation({
    mutationFn: (change: ClusterChange) =>
      body(
        api.PATCH("/api/v1/clusters/{id}", {
          params: { path: { id: cluster.id }, header: { "If-Match": etag } },
          body: change,
        }),
      ),
    onSettled: () => client.invalidateQueries({ queryKey: keys.clusters }),
  });
}

/** Wakes a cluster now, or puts it to sleep now. */
export function usePower(clusterId: string): UseMutationResult<Operation, Error, "wake" | "sleep"> {
  const client = useQueryClient();
  const params = { path: { id: clusterId } };
  return useMutation({
    mutationFn: (action: "wake" | "sleep") =>
      body(
        action === "wake"
          ? api.POST("/api/v1/clusters/{id}:wake", { params })
          : api.POST("/api/v1/clusters/{id}:sleep", { params }),
      ),
    onSettled: () => client.invalidateQueries({ queryKey: keys.cluster(clusterId) }),
  });
}

/** Suspends a cluster, or resumes it. */
export function useSuspension(
  clusterId: string,
): UseMutationResult<Operation, Error, "suspend" | "resume"> {
  const client = useQueryClient();
  const params = { path: { id: clusterId } };
  return useMutation({
    mutationFn: (action: "suspend" | "resume") =>
      body(
        action === "suspend"
          ? api.POST("/api/v1/clusters/{id}:suspend", { params })
          : api.POST("/api/v1/clusters/{id}:resume", { params }),
      ),
    onSettled: () => client.invalidateQueries({ queryKey: keys.cluster(clusterId) }),
  });
}

/** Deletes a cluster. The service checks its `name` as a confirmation. */
export function useDeleteCluster(clusterId: string): UseMutationResult<Operation, Error, string> {
  const client = useQueryClient();
  return useMutation({
    mutationFn: (name: string) =>
      body(
        api.DELETE("/api/v1/clusters/{id}", {
          params: { path: { id: clusterId }, query: { name } },
        }),
      ),
    onSuccess: () => client.invalidateQueries({ queryKey: keys.clusters }),
  });
}

/** Restores a deleted cluster. */
export function useUndeleteCluster(
  clusterId: string,
): UseMutationResult<Operation, Error, string | undefined> {
  const client = useQueryClient();
  return useMutation({
    mutationFn: (name: string | undefined) =>
      body(
        api.POST("/api/v1/clusters/{id}:undelete", {
          params: { path: { id: clusterId } },
          body: { name },
        }),
      ),
    onSettled: () => client.invalidateQueries({ queryKey: keys.clusters }),
  });
}
