import { formatCount } from "@/lib/format/bytes";

/** Returns a limit's name for people: `wakes_per_minute` → `Wakes per minute`. */
export function limitLabel(name: string): string {
  const words = name
    .replaceAll("_", " ")
    .replace(/^api\b/, "API")
    .replace(/^acls$/, "ACLs");
  return words.charAt(0).toUpperCase() + words.slice(1);
}

/** Formats a limit with its unit: `4 000 partitions`, `1 broker`. */
export function formatLimit(limit: number, unit: string): string {
  const one = limit === 1 && /^[a-z]+[a-rt-z]s$/.test(unit) && !unit.endsWith("ies");
  return `${formatCount(limit)} ${one ? unit.slice(0, -1) : unit}`;
}

/** Returns the used share of a limit, from 0 to 1; null where the usage is not known. */
export function usedShare({ used, limit }: { used: number | null; limit: number }): number | null {
  return used === null || limit <= 0 ? null : Math.min(1, used / limit);
}

/** From this share on the usage of a limit is shown in a colour. */
export const NEAR = 0.8;
