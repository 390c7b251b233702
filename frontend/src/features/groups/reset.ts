import type { PlannedOffset, ResetRequest, ResetTarget } from "@/lib/api/types";
import { big, INT64_MAX, parseWhole } from "@/lib/format/whole";

export type ResetKind = ResetTarget | "group";

export const RESET_KINDS: { value: ResetKind; label: string }[] = [
  { value: "earliest", label: "The oldest record" },
  { value: "latest", label: "The end: skip what is there" },
  { value: "timestamp", label: "The first record from a time on" },
  { value: "offset", label: "An offset" },
  { value: "shift", label: "Forward or back by a number of records" },
  { value: "group", label: "The offsets of another group" },
];

export interface ResetChoice {
  kind: ResetKind;
  /** The value: an instant in ISO 8601, a typed offset or number of records, or a group. */
  value: string;
  /** The topics; empty for all topics in which the group has committed. */
  topics: string[];
}

/** Returns what is wrong with a choice; null where it can be planned. */
export function resetComplaint({ kind, value }: ResetChoice): string | null {
  if (kind === "earliest" || kind === "latest") return null;
  if (kind === "timestamp") {
    return Number.isNaN(Date.parse(value)) ? "Enter a date and a time" : null;
  }
  if (kind === "group") return value ? null : "Choose a group";
  const number = parseWhole(value);
  if (number === undefined || big(number) > INT64_MAX || big(number) < -INT64_MAX) {
    return "Enter a whole number";
  }
  if (kind === "offset" && big(number) < 0n) return "Offsets begin at 0";
  return kind === "shift" && big(number) === 0n ? "A shift by 0 changes nothing" : null;
}

/** Returns the request for a valid choice. */
export function resetRequest(choice: ResetChoice, dryRun: boolean): ResetRequest {
  const { kind, value, topics } = choice;
  const to = kind === "group" ? { group: value } : kind;
  const request: ResetRequest = { to, dry_run: dryRun };
  if (kind === "timestamp") request.timestamp = new Date(value).toISOString();
  else if (kind === "offset" || kind === "shift") request[kind] = parseWhole(value);
  if (topics.length > 0) request.topics = topics.map((topic) => ({ topic }));
  return request;
}

/** Returns by how many records a partition moves; null where nothing was committed before. */
export function moveOf(planned: PlannedOffset): bigint | null {
  return planned.current === null ? null : big(planned.target) - big(planned.current);
}

/**
 * The requests that put moved partitions back to where they were: one for each former offset,
 * since a request names one. What had no offset before keeps its new one: Kafka takes none away.
 */
export function undoRequests(plan: readonly PlannedOffset[]): ResetRequest[] {
  const places = new Map<string, Map<string, number[]>>();
  for (const { topic, partition, current, target } of plan) {
    if (current === null || current === target) continue;
    const topics = places.get(current) ?? new Map<string, number[]>();
    topics.set(topic, [...(topics.get(topic) ?? []), partition]);
    places.set(current, topics);
  }
  return [...places].map(([offset, topics]) => ({
    to: "offset",
    offset,
    topics: [...topics].map(([topic, partitions]) => ({ topic, partitions })),
    dry_run: false,
  }));
}
