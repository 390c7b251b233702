import { useQuery } from "@tanstack/react-query";
import { useParams } from "@tanstack/react-router";
import { clusterQuery } from "@/features/clusters/api/clusters";
import type { Cluster } from "@/lib/api/types";
import { type Permission, useProjectRefusal } from "@/lib/permissions";

/** Returns the id of the cluster that the address names. */
export function useClusterId(): string {
  const { clusterId } = useParams({ strict: false });
  if (clusterId === undefined) throw new Error("this page is not inside a cluster");
  return clusterId;
}

/** Returns the cluster that the address names; undefined until it is read. */
export function useCluster(): Cluster | undefined {
  return useQuery(clusterQuery(useClusterId())).data;
}

/**
 * Returns why the person may not change anything in the cluster, or lacks another permission there;
 * undefined where they may.
 */
export function useClusterRefusal(permission: Permission = "write"): string | undefined {
  return useProjectRefusal(permission, useCluster()?.project_id);
}
