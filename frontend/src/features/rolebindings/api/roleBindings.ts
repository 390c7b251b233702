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
import type { NewRoleBinding, RoleBinding } from "@/lib/api/types";

/** The roles of people and service accounts in projects. */
export const roleBindingListQuery = queryOptions({
  queryKey: keys.roleBindings,
  queryFn: () =>
    allPages((cursor) => body(api.GET("/api/v1/role-bindings", { params: { query: { cursor } } }))),
  ...SLOW,
});

export function useCreateRoleBinding(): UseMutationResult<RoleBinding, Error, NewRoleBinding> {
  const client = useQueryClient();
  return useMutation({
    mutationFn: (input: NewRoleBinding) => body(api.POST("/api/v1/role-bindings", { body: input })),
    onSuccess: () => client.invalidateQueries({ queryKey: keys.roleBindings }),
  });
}

export function useDeleteRoleBinding(): UseMutationResult<void, Error, RoleBinding> {
  const client = useQueryClient();
  return useMutation({
    mutationFn: ({ id }: RoleBinding) =>
      done(api.DELETE("/api/v1/role-bindings/{id}", { params: { path: { id } } })),
    onSettled: () => client.invalidateQueries({ queryKey: keys.roleBindings }),
  });
}
