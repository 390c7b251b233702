import {
  queryOptions,
  useMutation,
  type UseMutationResult,
  useQueryClient,
} from "@tanstack/react-query";
import { api, body } from "@/lib/api/client";
import { keys } from "@/lib/api/keys";
import { allPages } from "@/lib/api/pages";
import { LIVE, SLOW } from "@/lib/api/polling";
import type { PaymentAttempt } from "@/lib/api/types";
import { leaveFor } from "@/lib/leave";

/** What the organization owes, and what follows from it. */
export const accountQuery = queryOptions({
  queryKey: keys.account,
  queryFn: () => body(api.GET("/api/v1/account")),
  ...SLOW,
});

/** How the organization pays: the card, or by bank transfer. */
export const paymentMethodQuery = queryOptions({
  queryKey: keys.paymentMethod,
  queryFn: () => body(api.GET("/api/v1/payment-method")),
  // A card that was given on a page of Stripe is there some seconds later.
  ...LIVE,
});

/** The money that came in. */
export const paymentListQuery = queryOptions({
  queryKey: keys.payments,
  queryFn: () =>
    allPages((cursor) => body(api.GET("/api/v1/payments", { params: { query: { cursor } } }))),
  ...SLOW,
});

/** Leads to a page of Stripe on which a card is given. */
export function useGiveCard(): UseMutationResult<void, Error, void> {
  return useMutation({
    mutationFn: async () => {
      leaveFor((await body(api.POST("/api/v1/payment-method/setup"))).url);
    },
  });
}

/** Leads to a page of Stripe on which the card is changed or removed. */
export function useManageCard(): UseMutationResult<void, Error, void> {
  return useMutation({
    mutationFn: async () => {
      leaveFor((await body(api.POST("/api/v1/payment-method/portal"))).url);
    },
  });
}

/** Charges the card in advance. Where the bank asks for it, leads to the page of the bank. */
export function usePayInAdvance(): UseMutationResult<PaymentAttempt, Error, void> {
  const client = useQueryClient();
  return useMutation({
    mutationFn: () => body(api.POST("/api/v1/payment-method/advance")),
    onSuccess: ({ url }) => {
      if (url !== null) leaveFor(url);
    },
    onSettled: () =>
      Promise.all(
        [keys.account, keys.payments, keys.paymentMethod].map((queryKey) =>
          client.invalidateQueries({ queryKey }),
        ),
      ),
  });
}

/** What is to be paid: an invoice, alone or with every older one that is open. */
export interface PayInput {
  invoiceId: string;
  withOlder: boolean;
}

/** Charges the card now. Where the bank asks for it, leads to the page of the bank. */
export function usePay(): UseMutationResult<PaymentAttempt, Error, PayInput> {
  const client = useQueryClient();
  return useMutation({
    mutationFn: ({ invoiceId, withOlder }: PayInput) =>
      body(
        api.POST("/api/v1/invoices/{id}/pay", {
          params: { path: { id: invoiceId } },
          body: { with_older: withOlder },
        }),
      ),
    onSuccess: ({ url }) => {
      if (url !== null) leaveFor(url);
    },
    onSettled: () =>
      Promise.all(
        [keys.account, keys.payments, keys.invoices].map((queryKey) =>
          client.invalidateQueries({ queryKey }),
        ),
      ),
  });
}
