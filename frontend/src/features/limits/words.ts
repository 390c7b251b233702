import { formatCount } from "@/lib/format/bytes";

/** A limit's name for reading: `wakes_per_minute` → `Wakes per minute`. */
export function limitLabel(name: string): string {
  const words = name
    .replaceAll("_", " ")
    .replace(/^api\b/, "API")
    .replace(/^acls$/, "ACLs");
  return words.charAt(0).toUpperCase() + words.slice(1);
}

/** So many of a unit: `4 000 partitions`, `1 broker`. */
export function formatLimit(limit: number, unit: string): string {
  const one = limit === 1 && /^[a-z]+[a-rt-z]s$/.test(unit) && !unit.endsWith("ies");
  return `${formatCount(limit)} ${one ? unit.slice(0, -1) : unit}`;
}

/** How much of a limit is used, from 0 to 1; null where nobody knows. */
export function usedShare({ used, limit }: { used: number | null; limit: number }): number | null {
  return used === null || limit <= 0 ? null : Math.min(1, used / limit);
}

/** At this share of a limit it is said in colour. */
export const NEAR = 0.8;
