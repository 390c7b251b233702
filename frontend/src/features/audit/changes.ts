import type { AuditEntry } from "@/lib/api/types";

/** A value that an entry says something of. Where it changed, `from` is what it was before. */
export interface Change {
  name: string;
  from?: string;
  to: string;
}

/** So many values are in a cell of the table; the panel has all of them. */
const IN_LINE_MAX = 6;

const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value);

const isChange = (value: unknown): value is { from: unknown; to: unknown } =>
  isRecord(value) && Object.keys(value).sort().join() === "from,to";

/** Writes a value as one text: lists by their members, and `not set` where there is none. */
function written(value: unknown): string {
  if (value === null || value === undefined || value === "") return "not set";
  if (Array.isArray(value)) return value.length === 0 ? "none" : value.map(written).join(", ");
  if (isRecord(value)) return JSON.stringify(value);
  return String(value);
}

/** Names of configs and partitions are kept as they are; members of entries become words. */
const asWords = (name: string): string => (/[.-]/.test(name) ? name : name.replaceAll("_", " "));

/**
 * Returns what an entry says of values, the changed ones with what they were. The members of an
 * object, such as configs, count as values of their own.
 */
export function changesOf(detail: AuditEntry["detail"]): Change[] {
  return Object.entries(detail).flatMap(([name, value]): Change[] => {
    if (isChange(value)) {
      return [{ name: asWords(name), from: written(value.from), to: written(value.to) }];
    }
    if (isRecord(value)) return changesOf(value);
    if (value === null || value === "" || (Array.isArray(value) && value.length === 0)) return [];
    return [{ name: asWords(name), to: written(value) }];
  });
}

/** Writes one value: `retention.ms 60000 → 30000`, or what it is where it did not change. */
export function changeWords({ name, from, to }: Change): string {
  return from === undefined || from === to ? `${name} ${to}` : `${name} ${from} → ${to}`;
}

/** Returns the change in a few words each: first what changed, then the other values. */
export function detailWords(detail: AuditEntry["detail"]): string[] {
  const changes = changesOf(detail);
  const changed = changes.filter(({ from, to }) => from !== undefined && from !== to);
  const lines = [...changed, ...changes.filter((change) => !changed.includes(change))];
  const more = lines.length - IN_LINE_MAX;
  const shown = lines.slice(0, IN_LINE_MAX).map(changeWords);
  return more > 0 ? [...shown, `and ${String(more)} more`] : shown;
}
