import type { AuditEntry, AuditQuery } from "@/lib/api/types";

/** The choices of how far back the list goes, with their values in the address. */
export const SINCES = [
  { value: "1h", label: "Last hour", hours: 1 },
  { value: "24h", label: "Last 24 hours", hours: 24 },
  { value: "7d", label: "Last 7 days", hours: 7 * 24 },
  { value: "30d", label: "Last 30 days", hours: 30 * 24 },
] as const;

export type Since = (typeof SINCES)[number]["value"];

export interface AuditFilter {
  actor?: string;
  action?: string;
  type?: string;
  target?: string;
  since?: Since;
}

/**
 * Returns the API's query for a filter. `now` is rounded down, so that the query stays the same
 * for a while.
 */
export function auditQuery(filter: AuditFilter, now: Date): AuditQuery {
  const query: AuditQuery = {};
  if (filter.actor) query.actor = filter.actor;
  if (filter.action) query.action = filter.action;
  if (filter.type) query.target_type = filter.type;
  if (filter.target) query.target_id = filter.target;
  const hours = SINCES.find(({ value }) => value === filter.since)?.hours;
  if (hours !== undefined) {
    const minute = Math.floor(now.getTime() / 60_000) * 60_000;
    query.from = new Date(minute - hours * 3_600_000).toISOString();
  }
  return query;
}

/** Returns the address of the same entries as a file. */
export function exportPath(query: AuditQuery, format: "jsonl" | "csv"): string {
  const words = new URLSearchParams({ format });
  for (const [name, value] of Object.entries(query)) words.set(name, String(value));
  return `/api/v1/audit-log/export?${words.toString()}`;
}

/** `cluster.create` → `Cluster: create`; `api_key.rotate` → `API key: rotate`. */
export function actionWords(action: string): string {
  const [noun = action, ...verbs] = action.split(".");
  const words = noun
    .replaceAll("_", " ")
    .replace(/^api\b/, "API")
    .replace(/^acls?\b/, "ACL");
  const verb = verbs.join(" ").replaceAll("_", " ");
  const head = words.charAt(0).toUpperCase() + words.slice(1);
  return verb ? `${head}: ${verb}` : head;
}

const KINDS: Record<AuditEntry["actor"]["kind"], string> = {
  api_key: "API key",
  session: "in the console",
  system: "by itself",
  kafka: "Kafka client",
  staff: "Freshet staff",
};

/** Returns how an actor acted: `API key`, `in the console`. */
export function kindWords(kind: AuditEntry["actor"]["kind"]): string {
  return KINDS[kind];
}
