import {
  queryOptions,
  useMutation,
  type UseMutationResult,
  useQueryClient,
} from "@tanstack/react-query";
import { api, body } from "@/lib/api/client";
import { keys } from "@/lib/api/keys";
import type { BillingDetails, BillingDetailsChange } from "@/lib/api/types";

/** The name and address of invoices. */
export const billingDetailsQuery = queryOptions({
  queryKey: keys.billingDetails,
  queryFn: () => body(api.GET("/api/v1/billing-details")),
});

/** Changes the billing details, from the next invoice on. */
export function useUpdateBillingDetails(): UseMutationResult<
  BillingDetails,
  Error,
  BillingDetailsChange
> {
  const client = useQueryClient();
  return useMutation({
    mutationFn: (change: BillingDetailsChange) =>
      body(api.PATCH("/api/v1/billing-details", { body: change })),
    onSuccess: (changed) => {
      client.setQueryData(keys.billingDetails, changed);
    },
  });
}
