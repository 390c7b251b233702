import { levelOf } from "@/lib/format/meters";
import type { UsageItem } from "@/lib/api/types";
import { type Granularity, type Range, windowMinutes, windowsOf } from "./ranges";

export type GroupBy = "meter" | "cluster" | "topic" | "principal";

/** What a chart calls one group: a cluster's name, a topic, a credential. */
export interface GroupName {
  key: string;
  label: string;
}

/** One group's level in each window; 0 where nothing was counted. */
export interface Level extends GroupName {
  values: number[];
  /** Its quantity over the whole range, in the meter's own unit. */
  total: number;
}

/** So many groups have a colour of their own; what is smaller is shown together. */
export const GROUPS_MAX = 5;

/** The key of what is shown together. */
export const OTHERS = "others";

/** By what an item is grouped: the id, since a name can be given twice. */
export function groupKey(item: UsageItem, by: GroupBy): string {
  if (by === "cluster") return item.cluster_id ?? "";
  if (by === "topic") return item.topic_id ? `${item.cluster_id ?? ""}/${item.topic_id}` : "";
  return by === "principal" ? (item.principal ?? "") : "all";
}

/**
 * All groups, the greatest first, so that one has the same place and colour in every chart. A
 * group's size is its share of each meter, summed over the meters; of equal ones the key decides.
 */
export function groupOrder(items: readonly UsageItem[], by: GroupBy): string[] {
  const totals = new Map<string, number>();
  for (const { meter, quantity } of items) totals.set(meter, (totals.get(meter) ?? 0) + quantity);
  const shares = new Map<string, number>();
  for (const item of items) {
    const key = groupKey(item, by);
    const share = item.quantity / (totals.get(item.meter) || 1);
    shares.set(key, (shares.get(key) ?? 0) + share);
  }
  const order = [...shares].sort(([a, m], [b, n]) => n - m || (a < b ? -1 : 1));
  return order.map(([key]) => key);
}

interface Shown {
  items: readonly UsageItem[];
  meter: string;
  by: GroupBy;
  /** Of `groupOrder`. */
  order: readonly string[];
  nameOf: (key: string) => string;
}

/** The groups that are shown by themselves; one too many is not worth an "others". */
export function ownGroups(order: readonly string[]): readonly string[] {
  return order.length > GROUPS_MAX + 1 ? order.slice(0, GROUPS_MAX) : order;
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
    const level = levels.get(key) ?? { key, label, total: 0, values: zeros(starts) };
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
    level.total += item.quantity;
    const start = new Date(item.window_start);
    const place = places.get(start.getTime());
    if (place === undefined) continue;
    const minutes = countedMinutes(start, range.granularity, now);
    level.values[place] = (level.values[place] ?? 0) + levelOf(meter, item.quantity, minutes);
  }
  const known = [...own, OTHERS].flatMap((key) => levels.get(key) ?? []);
  // A chart without any usage still has its line at zero.
  return known.length > 0
    ? known
    : [{ key: "", label: nameOf(""), total: 0, values: zeros(starts) }];
}

const zeros = (starts: number[]): number[] => starts.map(() => 0);

/** The minutes of a window that have passed: the present window is not over yet. */
export function countedMinutes(start: Date, granularity: Granularity, now: Date): number {
  const passed = Math.floor((now.getTime() - start.getTime()) / 60_000);
  return Math.max(1, Math.min(windowMinutes(start, granularity), passed));
}

/** A meter's quantity over all items. */
export function totalOf(items: readonly UsageItem[], meter: string): number {
  return items.reduce((sum, item) => (item.meter === meter ? sum + item.quantity : sum), 0);
}

/** From when on the figures may still change, in ms; undefined when all of the range is final. */
export function provisionalFrom(items: readonly UsageItem[]): number | undefined {
  const starts = items.filter((item) => item.provisional).map((i) => Date.parse(i.window_start));
  return starts.length > 0 ? Math.min(...starts) : undefined;
}
