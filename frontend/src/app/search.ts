/** Reads the search part of addresses. Anybody can type one, so every value is checked. */
import { isMeter } from "@/lib/format/meters";

export const text = (value: unknown): string | undefined =>
  typeof value === "string" ? value : undefined;

export const whole = (value: unknown): number | undefined =>
  Number.isSafeInteger(value) && (value as number) >= 0 ? (value as number) : undefined;

/** Returns a value that is one of several words, or undefined. */
export function oneOf<Word extends string>(
  words: readonly Word[],
  value: unknown,
): Word | undefined {
  return words.find((word) => word === value);
}

const RANGES = ["1h", "3h", "24h", "7d", "30d", "90d", "12mo"] as const;
const GROUPS = ["cluster", "topic", "principal"] as const;

export interface UsageSearch {
  range?: (typeof RANGES)[number];
  from?: string;
  to?: string;
  by?: (typeof GROUPS)[number];
  cluster?: string;
  topic?: string;
  principal?: string;
  meter?: string;
  panel?: string;
}

/** The search of the usage page: time range, grouping, cluster, topic and meter. */
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
    panel: text(search.panel),
  };
}

export interface CostsSearch {
  /** A month like `2026-11`; the present month where it is undefined. */
  month?: string;
  by?: (typeof GROUPS)[number];
}

/** The search of the cost page: the month, and the grouping. */
export function costsSearch(search: Record<string, unknown>): CostsSearch {
  const month = text(search.month);
  return {
    month: month && /^\d{4}-(0[1-9]|1[0-2])$/.test(month) ? month : undefined,
    by: oneOf(GROUPS, search.by),
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
  offset?: number;
  timestamp?: string;
  filter?: string;
  panel?: string;
}

const STARTS = ["newest", "oldest", "offset", "timestamp", "live"] as const;

/** The search of a topic's messages: where reading begins, and the partition. */
export const messagesSearch = (search: Record<string, unknown>): MessagesSearch => ({
  from: oneOf(STARTS, search.from),
  partition: whole(search.partition),
  offset: whole(search.offset),
  timestamp: text(search.timestamp),
  filter: text(search.filter),
  panel: text(search.panel),
});
