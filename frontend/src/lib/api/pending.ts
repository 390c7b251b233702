/** Interfaces of usage and money by hand, until the description of the API has them. */

export interface UsageItem {
  id: string | null;
  meter: string;
  unit: string;
  quantity: number;
  window_start: string;
  window_end: string;
  provisional: boolean;
  billed: boolean;
  cluster_id: string | null;
  topic_id: string | null;
  topic: string | null;
  principal: string | null;
}

export interface UsagePage {
  items: UsageItem[];
  next_cursor: string | null;
  complete_until: string | null;
}

export interface UsageLane {
  incarnation: number;
  first_sequence: number;
  last_sequence: number;
  since: string;
  until: string;
}

export interface UsageFile {
  key: string;
  sha256: string;
  size_bytes: number;
  rows: number;
  lanes: UsageLane[];
}

export interface UsageRowDetail extends UsageItem {
  run: { id: string; day: string; state: string; published_at: string | null } | null;
  files: UsageFile[];
}

export interface UsageQuery {
  cluster_id?: string;
  topic_id?: string;
  from?: string;
  to?: string;
  granularity?: "minute" | "hour" | "day" | "month";
  group_by?: "none" | "cluster" | "topic" | "principal" | "meter";
  meter?: string;
  cursor?: string;
  limit?: number;
}

export interface Price {
  meter: string;
  name: string;
  unit_price: string;
  unit: string;
  free_units: number;
  free_unit: string;
  base_unit: string;
}

export interface Prices {
  id: string;
  valid_from: string;
  currency: string;
  prices: Price[];
}

export interface InvoiceLine {
  id: string;
  kind: "usage" | "cap";
  meter: string;
  cluster_id: string;
  cluster: string;
  description: string;
  quantity: number | null;
  unit: string;
  free_quantity: number | null;
  unit_price: string | null;
  price_unit: string;
  price_unit_size: number | null;
  amount_minor: number;
  usage_row_ids: string[];
}

export type InvoiceState = "draft" | "issued" | "void";

export interface InvoiceSummary {
  id: string;
  kind: "invoice" | "credit_note";
  number: string | null;
  state: InvoiceState;
  month: string;
  currency: string;
  subtotal_minor: number;
  tax_minor: number;
  total_minor: number;
  issued_at: string | null;
  created_at: string;
  sha256: string | null;
}

export interface Party {
  name: string;
  address: string[];
  country: string;
  vat_id: string;
  registration: string;
  email: string;
}

export interface ClosedEarly {
  reason: string;
  by: string;
  days_without_roll_up: string[];
  days_with_newer_files: string[];
  incomplete_hours: number;
}

export interface Invoice extends InvoiceSummary {
  lines: InvoiceLine[];
  seller: Party;
  customer: Party;
  tax: { category: string; percent: string; reason: string };
  price_version: string;
  closed_early: ClosedEarly | null;
  credits_id: string | null;
  credit_note_id: string | null;
  reason: string;
}

interface Json<T> {
  headers: Record<string, unknown>;
  content: { "application/json": T };
}

interface Get<T, Query = never> {
  parameters: { query?: Query; path?: never; header?: never; cookie?: never };
  responses: { 200: Json<T> };
}

interface GetOne<T> {
  parameters: { query?: never; path: { id: string }; header?: never; cookie?: never };
  responses: { 200: Json<T> };
}

interface List<T> {
  items: T[];
  next_cursor: string | null;
}

/** In the form of the generated `paths`. */
export interface PendingPaths {
  "/api/v1/usage": { get: Get<UsagePage, UsageQuery> };
  "/api/v1/usage/rows/{id}": { get: GetOne<UsageRowDetail> };
  "/api/v1/prices": { get: Get<Prices> };
  "/api/v1/invoices": { get: Get<List<InvoiceSummary>, { cursor?: string }> };
  "/api/v1/invoices/{id}": { get: GetOne<Invoice> };
}
