import {
  queryOptions,
  useMutation,
  type UseMutationResult,
  useQueryClient,
} from "@tanstack/react-query";
import { api, body } from "@/lib/api/client";
import { keys } from "@/lib/api/keys";
import { allPages } from "@/lib/api/pages";
import { SLOW } from "@/lib/api/polling";
import type { Grant, Refusal, StaffLimitRequest } from "@/lib/api/types";

/** The cells, for staff; everybody else is refused. */
export const staffCellsQuery = queryOptions({
  queryKey: keys.staff("cells"),
  queryFn: () =>
    allPages((cursor) => body(api.GET("/api/v1/staff/cells", { params: { query: { cursor } } }))),
  ...SLOW,
});

export const staffClustersQuery = queryOptions({
  queryKey: keys.staff("clusters"),
  queryFn: () =>
    allPages((cursor) =>
      body(api.GET("/api/v1/staff/clusters", { params: { query: { cursor } } })),
    ),
  ...SLOW,
});

export const staffOperationsQuery = queryOptions({
  queryKey: keys.staff("operations"),
  queryFn: () =>
    allPages((cursor) =>
      body(api.GET("/api/v1/staff/operations", { params: { query: { cursor } } })),
    ),
  ...SLOW,
});

export const staffIncidentsQuery = queryOptions({
  queryKey: keys.staff("incidents"),
  queryFn: () =>
    allPages((cursor) =>
      body(api.GET("/api/v1/staff/incidents", { params: { query: { cursor } } })),
    ),
  ...SLOW,
});

export const staffInvoiceMonthsQuery = queryOptions({
  queryKey: keys.staff("invoice-months"),
  queryFn: () =>
    allPages((cursor) =>
      body(api.GET("/api/v1/staff/invoice-months", { params: { query: { cursor } } })),
    ),
  ...SLOW,
});

/** Invoices of closed months that could not be issued yet. */
export const staffMissingInvoicesQuery = queryOptions({
  queryKey: keys.staff("missing-invoices"),
  queryFn: () =>
    allPages((cursor) =>
      body(api.GET("/api/v1/staff/missing-invoices", { params: { query: { cursor } } })),
    ),
  ...SLOW,
});

export const staffRequestsQuery = queryOptions({
  queryKey: keys.staff("limit-requests"),
  queryFn: () =>
    allPages((cursor) =>
      body(api.GET("/api/v1/staff/limit-requests", { params: { query: { cursor } } })),
    ),
  ...SLOW,
});

/** Grants a request, as asked or with another value. */
export function useGrant(id: string): UseMutationResult<StaffLimitRequest, Error, Grant> {
  const client = useQueryClient();
  return useMutation({
    mutationFn: (input: Grant) =>
      body(
        api.POST("/api/v1/staff/limit-requests/{id}:grant", {
          params: { path: { id } },
          body: input,
        }),
      ),
    onSettled: () => client.invalidateQueries({ queryKey: keys.staff("limit-requests") }),
  });
}

/** Refuses a request with a reason. */
export function useRefuse(id: string): UseMutationResult<StaffLimitRequest, Error, Refusal> {
  const client = useQueryClient();
  return useMutation({
    mutationFn: (input: Refusal) =>
      body(
        api.POST("/api/v1/staff/limit-requests/{id}:refuse", {
          params: { path: { id } },
          body: input,
        }),
      ),
    onSettled: () => client.invalidateQueries({ queryKey: keys.staff("limit-requests") }),
  });
}
