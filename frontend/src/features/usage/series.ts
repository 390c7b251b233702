import { isBillable, levelOf } from "@/lib/format/meters";
import type { UsageItem } from "@/lib/api/types";
import { big } from "@/lib/format/whole";
import { type Granularity, type Range, windowMinutes, windowsOf } from "./ranges";

export type GroupBy = "meter" | "cluster" | "topic" | "principal";

/** A group of a chart with its name: a cluster, a topic or a credential. */
export interface GroupName {
  key: string;
  label: string;
}

/** A group's level in each window; 0 where nothing was counted. */
export interface Level extends GroupName {
  values: number[];
  /** The quantity over the whole range, in the meter's base unit. */
  total: bigint;
}

/** How many groups have a colour of their own. Smaller groups are summed. */
export const GROUPS_MAX = 5;

/** The key of the groups that are summed. */
export const OTHERS = "others";

/** The key of what is not billed, which is shown apart from all groups. */
export const NOT_BILLED = "not billed";

/** Returns whether an item is usage that others would pay for, and that nobody pays for here. */
export const isApart = ({ billed, meter }: UsageItem): boolean => !billed && isBillable(meter);

/** Returns the key of an item's group. It is an id, since names are not unique. */
export function groupKey(item: UsageItem, by: GroupBy): string {
  if (isApart(item)) return NOT_BILLED;
  if (by === "cluster") return item.cluster_id ?? "";
  if (by === "topic") return item.topic_id ? `${item.cluster_id ?? ""}/${item.topic_id}` : "";
  return by === "principal" ? (item.principal ?? "") : "all";
}

/**
 * All groups, the greatest first, so that one has the same place and colour in every chart. A
 * group's size is its share of each meter, summed over the meters; of equal ones the key decides.
 * What is not billed comes last.
 */
export function groupOrder(items: readonly UsageItem[], by: GroupBy): string[] {
  const totals = new Map<string, number>();
  for (const { meter, quantity } of items) {
    totals.set(meter, (totals.get(meter) ?? 0) + Number(quantity));
  }
  const shares = new Map<string, number>();
  for (const item of items) {
    const key = groupKey(item, by);
    const share = Number(item.quantity) / (totals.get(item.meter) || 1);
    shares.set(key, (shares.get(key) ?? 0) + share);
  }
  const last = (key: string): number => Number(key === NOT_BILLED);
  const order = [...shares].sort(
    ([a, m], [b, n]) => last(a) - last(b) || n - m || (a < b ? -1 : 1),
  );
  return order.map(([key]) => key);
}

interface Shown {
  items: readonly UsageItem[];
  meter: string;
  by: GroupBy;
  /** The order of `groupOrder`. */
  order: readonly string[];
  nameOf: (key: string) => string;
}

/**
 * Returns the groups that are shown by themselves. A single further group is not summed as
 * "others", and what is not billed never is.
 */
export function ownGroups(order: readonly string[]): readonly string[] {
  const billed = order.filter((key) => key !== NOT_BILLED);
  if (billed.length <= GROUPS_MAX + 1) return order;
  return [...billed.slice(0, GROUPS_MAX), ...order.slice(billed.length)];
}

/**
 * The levels of one meter over a range, one for each group that has any. The greatest groups come
 * first; those beyond `GROUPS_MAX` are summed as "others".
 */
export function levelsOf(shown: Shown, range: Range, now: Date): Level[] {
  const { meter, by, order, nameOf } = shown;
  const starts = windowsOf(range, now);
  const places = new Map(starts.map((start, index) => [start, index]));
  const own = ownGroups(order);
  const levels = new Map<string, Level>();
  const levelFor = (key: string, label: string): Level => {
    const level = levels.get(key) ?? { key, label, total: 0n, values: zeros(starts) };
    levels.set(key, level);
    return level;
  };
  for (const item of shown.items) {
    if (item.meter !== meter) continue;
    const key = groupKey(item, by);
    const rest = order.length - own.length;
    const level = own.includes(key)
      ? levelFor(key, nameOf(key))
      : levelFor(OTHERS, `${String(rest)} others`);
    level.total += big(item.quantity);
    const start = new Date(item.window_start);
    const place = places.get(start.getTime());
    if (place === undefined) continue;
    const minutes = countedMinutes(start, range.granularity, now);
    level.values[place] = (level.values[place] ?? 0) + levelOf(meter, item.quantity, minutes);
  }
  const billed = own.filter((key) => key !== NOT_BILLED);
  const known = [...billed, OTHERS, NOT_BILLED].flatMap((key) => levels.get(key) ?? []);
  // A chart without usage still has a line at zero.
  return known.length > 0
    ? known
    : [{ key: "", label: nameOf(""), total: 0n, values: zeros(starts) }];
}

const zeros = (starts: number[]): number[] => starts.map(() => 0);

/**
 * Returns the minutes of a window that have passed; fewer than its length for the present window.
 */
export function countedMinutes(start: Date, granularity: Granularity, now: Date): number {
  const passed = Math.floor((now.getTime() - start.getTime()) / 60_000);
  return Math.max(1, Math.min(windowMinutes(start, granularity), passed));
}

/** Returns a meter's quantity over all items, billed or not. */
export function totalOf(items: readonly UsageItem[], meter: string): bigint {
  return items.reduce((sum, item) => (item.meter === meter ? sum + big(item.quantity) : sum), 0n);
}

/**
 * Returns from when on, in ms, figures may still change; undefined where the whole range is final.
 */
export function provisionalFrom(items: readonly UsageItem[]): number | undefined {
  const starts = items.filter((item) => item.provisional).map((i) => Date.parse(i.window_start));
  return starts.length > 0 ? Math.min(...starts) : undefined;
}
