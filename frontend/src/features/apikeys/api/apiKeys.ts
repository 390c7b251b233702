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
import type { ApiKey, ApiKeyCreated, NewApiKey } from "@/lib/api/types";

/** The organization's keys for the REST interface, without their secrets. */
export const apiKeysQuery = queryOptions({
  queryKey: keys.apiKeys,
  queryFn: () =>
    allPages((cursor) => body(api.GET("/api/v1/api-keys", { params: { query: { cursor } } }))),
  ...SLOW,
});

export function useCreateApiKey(): UseMutationResult<ApiKeyCreated, Error, NewApiKey> {
  const client = useQueryClient();
  return useMutation({
    mutationFn: (input: NewApiKey) => body(api.POST("/api/v1/api-keys", { body: input })),
    onSuccess: () => client.invalidateQueries({ queryKey: keys.apiKeys }),
  });
}

/** Revokes a key: the next request with it is refused. */
export function useRevokeApiKey(): UseMutationResult<void, Error, ApiKey> {
  const client = useQueryClient();
  return useMutation({
    mutationFn: ({ id }: ApiKey) =>
      done(api.DELETE("/api/v1/api-keys/{id}", { params: { path: { id } } })),
    onSuccess: () => client.invalidateQueries({ queryKey: keys.apiKeys }),
  });
}

/** The input of a key's rotation. */
export interface Rotation {
  id: string;
  overlapS: number;
}

/** Makes a key with the same rights. The old one ends after the overlap. */
export function useRotateApiKey(): UseMutationResult<ApiKeyCreated, Error, Rotation> {
  const client = useQueryClient();
  return useMutation({
    mutationFn: ({ id, overlapS }: Rotation) =>
      body(
        api.POST("/api/v1/api-keys/{id}:rotate", {
          params: { path: { id } },
          body: { overlap_s: overlapS },
        }),
      ),
    onSettled: () => client.invalidateQueries({ queryKey: keys.apiKeys }),
  });
}
