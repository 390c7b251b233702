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
import type {
  CreditInput,
  PaymentInput,
  RefundInput,
  StaffCredit,
  StaffPayment,
  StaffReceivable,
  StaffRefund,
  WriteOffInput,
} from "@/lib/api/types";

/** What is open of every organization's invoices. */
export const staffReceivablesQuery = queryOptions({
  queryKey: keys.staff("receivables"),
  queryFn: () =>
    allPages((cursor) =>
      body(api.GET("/api/v1/staff/receivables", { params: { query: { cursor } } })),
    ),
  ...SLOW,
});

/** The charges of cards that failed, the newest 200. */
export const staffFailedAttemptsQuery = queryOptions({
  queryKey: keys.staff("payment-attempts"),
  queryFn: async () => {
    const query = { failed: true, limit: 200 };
    return (await body(api.GET("/api/v1/staff/payment-attempts", { params: { query } }))).items;
  },
  ...SLOW,
});

/** What does not agree at present between the ledger, the invoices and Stripe. */
export const staffDifferencesQuery = queryOptions({
  queryKey: keys.staff("differences"),
  queryFn: () =>
    allPages((cursor) =>
      body(api.GET("/api/v1/staff/reconciliation", { params: { query: { open: true, cursor } } })),
    ),
  ...SLOW,
});

/** The newest comparisons of the ledger, the invoices and Stripe. */
export const staffReconciliationsQuery = queryOptions({
  queryKey: keys.staff("reconciliations"),
  queryFn: async () => {
    const query = { limit: 5 };
    return (await body(api.GET("/api/v1/staff/reconciliation/runs", { params: { query } }))).items;
  },
  ...SLOW,
});

/** The money that came in, the newest 200. */
export const staffPaymentsQuery = queryOptions({
  queryKey: keys.staff("payments"),
  queryFn: async () => {
    const query = { limit: 200 };
    return (await body(api.GET("/api/v1/staff/payments", { params: { query } }))).items;
  },
  ...SLOW,
});

/** Sends a change of what is owed or was paid, and reads both again. */
function useMoneyChange<Input, Result>(
  send: (input: Input) => Promise<Result>,
): UseMutationResult<Result, Error, Input> {
  const client = useQueryClient();
  return useMutation({
    mutationFn: send,
    onSettled: () =>
      Promise.all(
        ["receivables", "payments"].map((what) =>
          client.invalidateQueries({ queryKey: keys.staff(what) }),
        ),
      ),
  });
}

/** Enters a payment. The same bank id twice is one payment. */
export const useEnterPayment = (): UseMutationResult<StaffPayment, Error, PaymentInput> =>
  useMoneyChange((input: PaymentInput) =>
    body(api.POST("/api/v1/staff/payments", { body: input })),
  );

/** Grants credit, which pays open invoices at once. */
export const useGrantCredit = (): UseMutationResult<StaffCredit, Error, CreditInput> =>
  useMoneyChange((input: CreditInput) => body(api.POST("/api/v1/staff/credits", { body: input })));

/** Gives up what is open of an invoice. */
export const useWriteOff = (): UseMutationResult<StaffReceivable, Error, WriteOffInput> =>
  useMoneyChange((input: WriteOffInput) =>
    body(api.POST("/api/v1/staff/write-offs", { body: input })),
  );

/** Enters a refund; of a card's payment, has Stripe make it. */
export const useRefund = (): UseMutationResult<StaffRefund, Error, RefundInput> =>
  useMoneyChange((input: RefundInput) => body(api.POST("/api/v1/staff/refunds", { body: input })));
