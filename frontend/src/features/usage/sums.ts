import type { UsageItem } from "@/lib/api/types";
import { isBillable, METERS } from "@/lib/format/meters";
import { monthOf, monthStart } from "@/lib/format/utc";
import { big } from "@/lib/format/whole";
import { OURS } from "./names";
import type { Range } from "./ranges";

/** Whether usage is billed, or why it is not. */
export type Part = "billed" | "service" | "internal" | "never" | "unbilled";

const WHY: Partial<Record<Part, string>> = {
  service: "Freshet itself",
  internal: "internal topics",
};

/** Returns the words for a part: `billed`, `not billed: Freshet itself`. */
export function partWords(part: Part): string {
  if (part === "billed" || part === "never") return part === "never" ? "never billed" : part;
  // While it is not known who caused it, there is no reason.
  const why = WHY[part];
  return why === undefined ? "not billed" : `not billed: ${why}`;
}

/** What a meter has of a part, in base units. */
export interface MeterSum {
  meter: string;
  part: Part;
  quantity: bigint;
  /** How much of it is not published yet. */
  provisional: bigint;
}

/** Returns why an item of the sums by principal is not billed, or that it is. */
export function partOf({ billed, meter, principal }: UsageItem): Part {
  if (billed) return "billed";
  if (!isBillable(meter)) return "never";
  return principal === OURS ? "service" : "internal";
}

const PARTS: readonly Part[] = ["billed", "service", "internal", "unbilled", "never"];

/**
 * Sums a range by meter and part. `items` are sums by meter; `unbilled` are the sums by principal
 * of what is not billed, or undefined as long as they are not known.
 */
export function sumsOf(
  items: readonly UsageItem[],
  unbilled: readonly UsageItem[] | undefined,
): MeterSum[] {
  const sums = new Map<string, MeterSum>();
  const add = (part: Part, { meter, quantity, provisional }: UsageItem): void => {
    const key = `${meter} ${part}`;
    const sum = sums.get(key) ?? { meter, part, quantity: 0n, provisional: 0n };
    sum.quantity += big(quantity);
    if (provisional) sum.provisional += big(quantity);
    sums.set(key, sum);
  };
  for (const item of items) {
    if (item.billed) add("billed", item);
    else if (!unbilled) add(isBillable(item.meter) ? "unbilled" : "never", item);
  }
  for (const item of unbilled ?? []) if (!item.billed) add(partOf(item), item);
  return METERS.flatMap((meter) => PARTS.flatMap((part) => sums.get(`${meter} ${part}`) ?? []));
}

/** Returns the sums of the rows that a filter leaves. */
export function filteredSums(
  sums: readonly MeterSum[],
  { meter, billed }: { meter?: string; billed?: boolean },
): MeterSum[] {
  return sums.filter(
    (sum) =>
      (meter === undefined || sum.meter === meter) &&
      (billed === undefined || billed === (sum.part === "billed")),
  );
}

/** Returns the month like `2026-11` that a range is exactly; undefined where it is none. */
export function monthOfRange({ from, to }: Range): string | undefined {
  const month = monthOf(from);
  const whole =
    from.getTime() === monthStart(month).getTime() &&
    to.getTime() === monthStart(month, 1).getTime();
  return whole ? month : undefined;
}
