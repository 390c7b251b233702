import { useQueries, useQuery } from "@tanstack/react-query";
import { useMemo } from "react";
import { clusterListQuery } from "@/features/clusters/api/clusters";
import { credentialsQuery } from "@/features/credentials/api/credentials";
import type { Names } from "@/features/usage/names";
import type { Credential } from "@/lib/api/types";

/** The names of credentials are read for at most so many clusters. */
const CLUSTERS_MAX = 20;

/** Reads the names of clusters and credentials, since usage has only their ids. */
export function useNames(): Names {
  const { data: clusters } = useQuery(clusterListQuery);
  const credentials = useQueries({
    queries: (clusters ?? [])
      .slice(0, CLUSTERS_MAX)
      .map(({ id }) => ({ ...credentialsQuery(id), refetchInterval: false as const })),
    combine: namesOfCredentials,
  });
  const byId = useMemo(
    () => new Map((clusters ?? []).map(({ id, name }) => [id, name])),
    [clusters],
  );
  return useMemo(() => ({ clusters: byId, credentials }), [byId, credentials]);
}

function namesOfCredentials(results: { data?: Credential[] }[]): Record<string, string> {
  const all = results.flatMap(({ data }) => data ?? []);
  return Object.fromEntries(all.map(({ principal, name }) => [principal, name]));
}
