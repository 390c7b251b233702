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
import type { Alert, AlertChange, NewAlert } from "@/lib/api/types";

/** The alerts of all clusters that the person may see, with their states. */
export const alertListQuery = queryOptions({
  queryKey: keys.alerts,
  queryFn: () =>
    allPages((cursor) => body(api.GET("/api/v1/alerts", { params: { query: { cursor } } }))),
  ...SLOW,
});

export function useCreateAlert(): UseMutationResult<Alert, Error, NewAlert> {
  const client = useQueryClient();
  return useMutation({
    mutationFn: (input: NewAlert) => body(api.POST("/api/v1/alerts", { body: input })),
    onSuccess: () => client.invalidateQueries({ queryKey: keys.alerts }),
  });
}

/** Changes an alert, unless somebody else changed it since it was read. */
export function useUpdateAlert(alert: Alert): UseMutationResult<Alert, Error, AlertChange> {
  const client = useQueryClient();
  const header = { "If-Match": `"${String(alert.generation)}"` };
  return useMutation({
    mutationFn: (change: AlertChange) =>
      body(
        api.PATCH("/api/v1/alerts/{id}", {
          params: { path: { id: alert.id }, header },
          body: change,
        }),
      ),
    onSettled: () => client.invalidateQueries({ queryKey: keys.alerts }),
  });
}

/** Removes an alert. No mail is sent that it is over. */
export function useRemoveAlert(): UseMutationResult<void, Error, Alert> {
  const client = useQueryClient();
  return useMutation({
    mutationFn: ({ id }: Alert) =>
      done(api.DELETE("/api/v1/alerts/{id}", { params: { path: { id } } })),
    onSettled: () => client.invalidateQueries({ queryKey: keys.alerts }),
  });
}
