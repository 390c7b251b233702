import {
  queryOptions,
  useIsMutating,
  useMutation,
  type UseMutationResult,
  useQueryClient,
} from "@tanstack/react-query";
import { api, body, done } from "@/lib/api/client";
import { keys } from "@/lib/api/keys";
import { allPages } from "@/lib/api/pages";
import { LIVE, SLOW } from "@/lib/api/polling";
import type { AclDraft, CredentialCreated } from "@/lib/api/types";
import { rememberCredential } from "@/lib/freshCredentials";
import { rightsOfSnippets } from "../rights";

/** How far somebody has come with a cluster, as the service knows it. */
export const firstStepsQuery = (clusterId: string) =>
  queryOptions({
    queryKey: keys.firstSteps(clusterId),
    queryFn: () =>
      body(
        api.GET("/api/v1/clusters/{cluster_id}/first-steps", {
          params: { path: { cluster_id: clusterId } },
        }),
      ),
    ...LIVE,
  });

/** The access rules of one principal. */
export const rightsQuery = (clusterId: string, principal: string) =>
  queryOptions({
    queryKey: keys.aclsOf(clusterId, principal),
    queryFn: () =>
      allPages((cursor) =>
        body(
          api.GET("/api/v1/clusters/{cluster_id}/acls", {
            params: { path: { cluster_id: clusterId }, query: { principal, cursor } },
          }),
        ),
      ),
    ...SLOW,
  });

const addRights = (clusterId: string, items: AclDraft[]): Promise<void> =>
  done(
    api.POST("/api/v1/clusters/{cluster_id}/acls:batch", {
      params: { path: { cluster_id: clusterId } },
      body: { items },
    }),
  );

/** A credential for the snippets: its name, and the topic that they use. */
export interface SnippetCredential {
  name: string;
  topic: string;
}

async function createCredential(
  clusterId: string,
  { name, topic }: SnippetCredential,
): Promise<CredentialCreated> {
  const path = { cluster_id: clusterId };
  const created = await body(
    api.POST("/api/v1/clusters/{cluster_id}/credentials", {
      params: { path },
      body: { name, role: "none" },
    }),
  );
  try {
    await addRights(clusterId, rightsOfSnippets(`User:${created.username}`, topic));
  } catch (error) {
    // Without its rights it would be a snippet that fails. Why there are none is what is shown.
    const { id } = created;
    await done(
      api.DELETE("/api/v1/clusters/{cluster_id}/credentials/{id}", {
        params: { path: { ...path, id } },
      }),
    ).catch(() => undefined);
    throw error;
  }
  return created;
}

const creating = (clusterId: string) => ["create", ...keys.firstSteps(clusterId)] as const;

/** Tells whether some page is making a credential for the cluster's snippets. */
export function useIsCreating(clusterId: string): boolean {
  return useIsMutating({ mutationKey: creating(clusterId) }) > 0;
}

/** Gives what tells the same at the moment of the call. */
export function useIsCreatingNow(clusterId: string): () => boolean {
  const client = useQueryClient();
  return () => client.isMutating({ mutationKey: creating(clusterId) }) > 0;
}

/**
 * Makes a credential that may do what the snippets do, and nothing else. The page remembers its
 * password until it is reloaded.
 */
export function useCreateSnippetCredential(
  clusterId: string,
): UseMutationResult<CredentialCreated, Error, SnippetCredential> {
  const client = useQueryClient();
  return useMutation({
    mutationKey: creating(clusterId),
    mutationFn: (input: SnippetCredential) => createCredential(clusterId, input),
    onSuccess: ({ username, password, mechanism }) => {
      rememberCredential(clusterId, { username, password, mechanism });
    },
    onSettled: () =>
      Promise.all([
        client.invalidateQueries({ queryKey: keys.firstSteps(clusterId) }),
        client.invalidateQueries({ queryKey: keys.credentials(clusterId) }),
        client.invalidateQueries({ queryKey: keys.acls(clusterId) }),
      ]),
  });
}

/** Adds access rules that the snippets lack. */
export function useAddRights(clusterId: string): UseMutationResult<void, Error, AclDraft[]> {
  const client = useQueryClient();
  return useMutation({
    mutationFn: (items: AclDraft[]) => addRights(clusterId, items),
    onSettled: () => client.invalidateQueries({ queryKey: keys.acls(clusterId) }),
  });
}
