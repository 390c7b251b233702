import { queryOptions } from "@tanstack/react-query";
import { api, body } from "@/lib/api/client";
import { keys } from "@/lib/api/keys";
import { allPages } from "@/lib/api/pages";
import { SLOW } from "@/lib/api/polling";

/** The organization's invoices. */
export const invoiceListQuery = queryOptions({
  queryKey: keys.invoiceList,
  queryFn: () =>
    allPages((cursor) => body(api.GET("/api/v1/invoices", { params: { query: { cursor } } }))),
  ...SLOW,
});

/** One invoice with its lines. */
export const invoiceQuery = (id: string) =>
  queryOptions({
    queryKey: keys.invoice(id),
    queryFn: () => body(api.GET("/api/v1/invoices/{id}", { params: { path: { id } } })),
    ...SLOW,
  });

/** The addresses of an invoice's documents. The session's cookie gives access to them. */
export const pdfPath = (id: string): string => `/api/v1/invoices/${id}/pdf`;
export const evidencePath = (id: string): string => `/api/v1/invoices/${id}/evidence`;
