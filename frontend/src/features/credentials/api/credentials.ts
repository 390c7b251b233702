import {
  queryOptions,
  useMutation,
  type UseMutationResult,
  useQueryClient,
} from "@tanstack/react-query";
import { api, body, done } from "@/lib/api/client";
import { keys } from "@/lib/api/keys";
import { allPages } from "@/lib/api/pages";
import { SLOW } from "@/lib/api/polling";
import type { Credential, CredentialRole, CredentialCreated } from "@/lib/api/types";
import { forgetCredential, rememberCredential } from "@/lib/freshCredentials";

/** The credentials of a cluster's Kafka clients, without their passwords. */
export const credentialsQuery = (clusterId: string) =>
  queryOptions({
    queryKey: keys.credentials(clusterId),
    queryFn: () =>
      allPages((cursor) =>
        body(
          api.GET("/api/v1/clusters/{cluster_id}/credentials", {
            params: { path: { cluster_id: clusterId }, query: { cursor } },
          }),
        ),
      ),
    ...SLOW,
  });

export interface NewCredential {
  name: string;
  role: CredentialRole;
  expires_at?: string | null;
}

/** Makes a credential. The page remembers its password until it is reloaded. */
export function useCreateCredential(
  clusterId: string,
): UseMutationResult<CredentialCreated, Error, NewCredential> {
  const client = useQueryClient();
  return useMutation({
    mutationFn: (input: NewCredential) =>
      body(
        api.POST("/api/v1/clusters/{cluster_id}/credentials", {
          params: { path: { cluster_id: clusterId } },
          body: input,
        }),
      ),
    onSuccess: ({ username, password, mechanism }) => {
      rememberCredential(clusterId, { username, password, mechanism });
      return Promise.all([
        client.invalidateQueries({ queryKey: keys.credentials(clusterId) }),
        client.invalidateQueries({ queryKey: keys.acls(clusterId) }),
      ]);
    },
  });
}

/** Deletes a credential; its live connections are closed within seconds. */
export function useDeleteCredential(clusterId: string): UseMutationResult<void, Error, Credential> {
  const client = useQueryClient();
  return useMutation({
    mutationFn: ({ id }: Credential) =>
      done(
        api.DELETE("/api/v1/clusters/{cluster_id}/credentials/{id}", {
          params: { path: { cluster_id: clusterId, id } },
        }),
      ),
    onSuccess: (_, credential) => {
      forgetCredential(clusterId, credential.username);
      return client.invalidateQueries({ queryKey: keys.credentials(clusterId) });
    },
  });
}

/** The input of a credential's rotation. */
export interface Rotation {
  id: string;
  overlapS: number;
}

/** Makes a credential with the same rights. The old one ends after the overlap. */
export function useRotateCredential(
  clusterId: string,
): UseMutationResult<CredentialCreated, Error, Rotation> {
  const client = useQueryClient();
  return useMutation({
    mutationFn: ({ id, overlapS }: Rotation) =>
      body(
        api.POST("/api/v1/clusters/{cluster_id}/credentials/{id}:rotate", {
          params: { path: { cluster_id: clusterId, id } },
          body: { overlap_s: overlapS },
        }),
      ),
    onSuccess: ({ username, password, mechanism }) => {
      rememberCredential(clusterId, { username, password, mechanism });
    },
    onSettled: () =>
      Promise.all([
        client.invalidateQueries({ queryKey: keys.credentials(clusterId) }),
        client.invalidateQueries({ queryKey: keys.acls(clusterId) }),
      ]),
  });
}
