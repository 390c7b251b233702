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
import type { Budget, NewBudget } from "@/lib/api/types";

/** The organization's budgets with what is spent of each. */
export const budgetListQuery = queryOptions({
  queryKey: keys.budgets,
  queryFn: () =>
    allPages((cursor) => body(api.GET("/api/v1/budgets", { params: { query: { cursor } } }))),
  ...SLOW,
});

export function useCreateBudget(): UseMutationResult<Budget, Error, NewBudget> {
  const client = useQueryClient();
  return useMutation({
    mutationFn: (input: NewBudget) => body(api.POST("/api/v1/budgets", { body: input })),
    onSuccess: () => client.invalidateQueries({ queryKey: keys.budgets }),
  });
}

/** Changes a budget, unless somebody else changed it since it was read. */
export function useUpdateBudget(budget: Budget): UseMutationResult<Budget, Error, NewBudget> {
  const client = useQueryClient();
  const header = { "If-Match": `"${String(budget.generation)}"` };
  return useMutation({
    mutationFn: (change: NewBudget) =>
      body(
        api.PATCH("/api/v1/budgets/{id}", {
          params: { path: { id: budget.id }, header },
          body: change,
        }),
      ),
    onSettled: () => client.invalidateQueries({ queryKey: keys.budgets }),
  });
}

/** Removes a budget, and ends the suspension that it caused. */
export function useRemoveBudget(): UseMutationResult<void, Error, Budget> {
  const client = useQueryClient();
  return useMutation({
    mutationFn: ({ id }: Budget) =>
      done(api.DELETE("/api/v1/budgets/{id}", { params: { path: { id } } })),
    onSettled: () => client.invalidateQueries({ queryKey: keys.budgets }),
  });
}
