import { useQueries, useQuery } from "@tanstack/react-query";
import { useMemo } from "react";
import { clusterListQuery } from "@/features/clusters/api/clusters";
import { credentialsQuery } from "@/features/credentials/api/credentials";
import type { Names } from "@/features/usage/names";
import type { Credential } from "@/lib/api/types";

/** Of so many clusters the credentials are read for their names. */
const CLUSTERS_MAX = 20;

/** What clusters and credentials are called: usage knows their ids. */
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
