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
import type { NewServiceAccount, ServiceAccount, ServiceAccountChange } from "@/lib/api/types";

/** The service accounts of the organization. */
export const serviceAccountListQuery = queryOptions({
  queryKey: keys.serviceAccounts,
  queryFn: () =>
    allPages((cursor) =>
      body(api.GET("/api/v1/service-accounts", { params: { query: { cursor } } })),
    ),
  ...SLOW,
});

export function useCreateServiceAccount(): UseMutationResult<
  ServiceAccount,
  Error,
  NewServiceAccount
> {
  const client = useQueryClient();
  return useMutation({
    mutationFn: (input: NewServiceAccount) =>
      body(api.POST("/api/v1/service-accounts", { body: input })),
    onSuccess: () => client.invalidateQueries({ queryKey: keys.serviceAccounts }),
  });
}

/** Changes an account, unless somebody else changed it since it was read. */
export function useUpdateServiceAccount(
  account: ServiceAccount,
): UseMutationResult<ServiceAccount, Error, ServiceAccountChange> {
  const client = useQueryClient();
  const header = { "If-Match": `"${String(account.generation)}"` };
  return useMutation({
    mutationFn: (change: ServiceAccountChange) =>
      body(
        api.PATCH("/api/v1/service-accounts/{id}", {
          params: { path: { id: account.id }, header },
          body: change,
        }),
      ),
    onSettled: () => client.invalidateQueries({ queryKey: keys.serviceAccounts }),
  });
}

/** Deletes an account; its keys are refused within seconds. */
export function useDeleteServiceAccount(): UseMutationResult<void, Error, ServiceAccount> {
  const client = useQueryClient();
  return useMutation({
    mutationFn: ({ id }: ServiceAccount) =>
      done(api.DELETE("/api/v1/service-accounts/{id}", { params: { path: { id } } })),
    onSettled: () =>
      Promise.all([
        client.invalidateQueries({ queryKey: keys.serviceAccounts }),
        client.invalidateQueries({ queryKey: keys.apiKeys }),
      ]),
  });
}
