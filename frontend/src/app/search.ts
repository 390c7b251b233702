/** Reads the search part of addresses. Anybody can type one, so every value is checked. */
import { parseSearchWith, stringifySearchWith } from "@tanstack/react-router";
import { isMeter } from "@/lib/format/meters";
import { big, INT64_MAX, parseWhole } from "@/lib/format/whole";

/** Returns text. What looks like a number is read as one, such as a filter for `77`. */
export const text = (value: unknown): string | undefined => {
  if (Number.isSafeInteger(value)) return String(value);
  return typeof value === "string" ? value : undefined;
};

/** Whole numbers are written into addresses without quotes, whether or not they are text. */
const WHOLE = /^-?(0|[1-9]\d*)$/;

/** Reads a part of an address. A number that a double would round stays text. */
export const parseSearch = parseSearchWith((value) => {
  if (WHOLE.test(value) && !Number.isSafeInteger(Number(value))) throw new Error("beyond 2^53");
  return JSON.parse(value) as unknown;
});

/** Writes the search part of an address, which `parseSearch` reads. */
export const stringifySearch = stringifySearchWith(JSON.stringify, (value) => {
  if (WHOLE.test(value)) throw new Error("stands for itself");
  return JSON.parse(value) as unknown;
});

export const whole = (value: unknown): number | undefined =>
  Number.isSafeInteger(value) && (value as number) >= 0 ? (value as number) : undefined;

/** Returns a value that is one of several words, or undefined. */
export function oneOf<Word extends string>(
  words: readonly Word[],
  value: unknown,
): Word | undefined {
  return words.find((word) => word === value);
}

/**
 * Returns a whole number in an address as digits. The router reads short ones as numbers, and
 * leaves text those that a double would round.
 */
export const digits = (value: unknown): string | undefined =>
  whole(value)?.toString() ?? (typeof value === "string" ? unsigned(value) : undefined);

const unsigned = (value: string): string | undefined => {
  const read = parseWhole(value);
  return read === undefined || read.startsWith("-") || big(read) > INT64_MAX ? undefined : read;
};

/**
 * Returns an instant in an address in UTC. A time without a zone is a link of an older console,
 * which wrote the time of the browser.
 */
export const instant = (value: unknown): string | undefined => {
  const read = typeof value === "string" ? new Date(value) : undefined;
  return read && !Number.isNaN(read.getTime()) ? read.toISOString() : undefined;
};

const RANGES = ["1h", "3h", "24h", "7d", "30d", "90d", "12mo"] as const;
const GROUPS = ["cluster", "topic", "principal"] as const;
const COSTS_BY = [...GROUPS, "day"] as const;

export interface UsageSearch {
  range?: (typeof RANGES)[number];
  from?: string;
  to?: string;
  by?: (typeof GROUPS)[number];
  cluster?: string;
  topic?: string;
  principal?: string;
  meter?: string;
  billed?: boolean;
  panel?: string;
}

/**
 * The search of the usage page: time range, grouping, cluster, topic, credential, meter, and
 * whether what is shown is billed. An empty topic or credential is that of what belongs to none.
 */
export function usageSearch(search: Record<string, unknown>): UsageSearch {
  const meter = text(search.meter);
  return {
    range: oneOf(RANGES, search.range),
    from: text(search.from),
    to: text(search.to),
    by: oneOf(GROUPS, search.by),
    cluster: text(search.cluster),
    topic: text(search.topic),
    principal: text(search.principal),
    meter: meter !== undefined && isMeter(meter) ? meter : undefined,
    billed: typeof search.billed === "boolean" ? search.billed : undefined,
    panel: text(search.panel),
  };
}

export interface CostsSearch {
  /** A month like `2026-11`; the present month where it is undefined. */
  month?: string;
  by?: (typeof COSTS_BY)[number];
}

/** The search of the cost page: the month, and the grouping. */
export function costsSearch(search: Record<string, unknown>): CostsSearch {
  const month = text(search.month);
  return {
    month: month && /^\d{4}-(0[1-9]|1[0-2])$/.test(month) ? month : undefined,
    by: oneOf(COSTS_BY, search.by),
  };
}

const SINCES = ["1h", "24h", "7d", "30d"] as const;

export interface AuditSearch {
  actor?: string;
  action?: string;
  type?: string;
  target?: string;
  since?: (typeof SINCES)[number];
  panel?: string;
}

/** The search of the audit log: actor, action, target and time. */
export const auditSearch = (search: Record<string, unknown>): AuditSearch => ({
  actor: text(search.actor),
  action: text(search.action),
  type: text(search.type),
  target: text(search.target),
  since: oneOf(SINCES, search.since),
  panel: text(search.panel),
});

export interface PaymentSearch {
  /** What became of the page of Stripe on which a card is given. */
  card?: "given" | "canceled";
}

/** The search of the payment page, to which Stripe's pages lead back. */
export const paymentSearch = (search: Record<string, unknown>): PaymentSearch => ({
  card: oneOf(["given", "canceled"], search.card),
});

export interface InvoiceSearch {
  /** Whether the page of a bank, which asked to confirm a payment, led back. */
  payment?: "returned";
}

/** The search of an invoice's page. */
export const invoiceSearch = (search: Record<string, unknown>): InvoiceSearch => ({
  payment: oneOf(["returned"], search.payment),
});

/** `panel` names the open side panel, so that every view has an address. */
export interface PanelSearch {
  panel?: string;
}

export const panelSearch = (search: Record<string, unknown>): PanelSearch => ({
  panel: text(search.panel),
});

export interface MessagesSearch {
  from?: "newest" | "oldest" | "offset" | "timestamp" | "live";
  partition?: number;
  offset?: string;
  timestamp?: string;
  filter?: string;
  panel?: string;
}

const STARTS = ["newest", "oldest", "offset", "timestamp", "live"] as const;

/** The search of a topic's messages: where reading begins, and the partition. */
export const messagesSearch = (search: Record<string, unknown>): MessagesSearch => ({
  from: oneOf(STARTS, search.from),
  partition: whole(search.partition),
  offset: digits(search.offset),
  timestamp: instant(search.timestamp),
  filter: text(search.filter),
  panel: text(search.panel),
});
