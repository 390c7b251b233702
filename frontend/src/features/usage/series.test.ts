import { expect, test } from "vitest";
import type { UsageItem } from "@/lib/api/types";
import { resolveRange } from "./ranges";
import {
  countedMinutes,
  type GroupBy,
  groupOrder,
  GROUPS_MAX,
  type Level,
  levelsOf,
  NOT_BILLED,
  OTHERS,
  provisionalFrom,
  totalOf,
} from "./series";

const now = new Date("2026-11-21T14:05:30Z");
const range = resolveRange({ range: "24h" }, now);

function item(hour: number, quantity: number, more: Partial<UsageItem> = {}): UsageItem {
  const start = new Date(Date.UTC(2026, 10, 21, hour));
  return {
    id: null,
    meter: "ingress_bytes",
    unit: "bytes",
    quantity: String(quantity),
    window_start: start.toISOString(),
    window_end: new Date(start.getTime() + 3_600_000).toISOString(),
    provisional: false,
    billed: true,
    cluster_id: "cl_a",
    topic_id: null,
    topic: null,
    principal: null,
    principal_name: null,
    ...more,
  };
}

function levels(items: UsageItem[], by: GroupBy, meter = "ingress_bytes"): Level[] {
  const order = groupOrder(items, by);
  const nameOf = (key: string): string => key.toUpperCase();
  return levelsOf({ items, meter, by, order, nameOf }, range, now);
}

test("windows without usage are zero, and usage is in its window", () => {
  const items = [item(13, 5), item(14, 7), item(14, 9, { meter: "egress_bytes" })];
  const [level, ...rest] = levels(items, "meter");
  expect(rest).toEqual([]);
  expect(level?.values).toHaveLength(24);
  expect(level?.values.slice(-3)).toEqual([0, 5, 7]);
  expect(level?.total).toBe(12n);
});

test("groups come by size, and small ones are shown together without losing any", () => {
  const clusters = Array.from({ length: GROUPS_MAX + 3 }, (_, index) => `cl_${String(index)}`);
  const items = clusters.map((id, index) => item(13, index + 1, { cluster_id: id }));
  const shown = levels(items, "cluster");
  expect(shown.map(({ key }) => key)).toEqual([...clusters.slice(3).reverse(), OTHERS]);
  expect(shown.at(-1)?.label).toBe("3 others");
  const total = shown.reduce((sum, level) => sum + level.total, 0n);
  expect(total).toBe(totalOf(items, "ingress_bytes"));
  expect(shown[0]?.label).toBe("CL_7");
});

test("one group too many is shown by itself: others would hide just as much", () => {
  const items = Array.from({ length: GROUPS_MAX + 1 }, (_, index) =>
    item(13, 1, { cluster_id: `cl_${String(index)}` }),
  );
  const shown = levels(items, "cluster");
  expect(shown.some(({ key }) => key === OTHERS)).toBe(false);
});

test("topics of the same id in two clusters are two", () => {
  const items = ["cl_a", "cl_b"].map((id) => item(13, 1, { cluster_id: id, topic_id: "t" }));
  const shown = levels(items, "topic");
  expect(shown.map(({ key }) => key)).toEqual(["cl_a/t", "cl_b/t"]);
});

test("what is counted in time is a mean over the minutes that passed", () => {
  const stored = { meter: "storage_byte_minutes" as const };
  const items = [item(13, 60 * 1024, stored), item(14, 5 * 1024, stored)];
  const shown = levels(items, "meter", "storage_byte_minutes");
  expect(shown[0]?.values.slice(-2)).toEqual([1024, 1024]);
  expect(countedMinutes(new Date("2026-11-21T14:05:00Z"), "minute", now)).toBe(1);
});

test("what may still change begins with the first provisional window", () => {
  const items = [
    item(12, 1),
    item(14, 1, { provisional: true }),
    item(13, 1, { provisional: true }),
  ];
  expect(provisionalFrom(items)).toBe(Date.UTC(2026, 10, 21, 13));
  expect(provisionalFrom([item(12, 1)])).toBeUndefined();
});

test("a group keeps its place whichever meter is shown, and one without usage is left out", () => {
  const items = [
    item(13, 1_000_000, { cluster_id: "cl_in" }),
    item(13, 3, { cluster_id: "cl_stored", meter: "storage_byte_minutes" }),
    item(13, 1, { cluster_id: "cl_in", meter: "storage_byte_minutes" }),
  ];
  expect(groupOrder(items, "cluster")).toEqual(["cl_in", "cl_stored"]);
  expect(levels(items, "cluster").map(({ key }) => key)).toEqual(["cl_in"]);
  const stored = levels(items, "cluster", "storage_byte_minutes");
  expect(stored.map(({ key }) => key)).toEqual(["cl_in", "cl_stored"]);
});

test("without any usage there is one line at zero", () => {
  const [only, ...rest] = levels([], "topic");
  expect(rest).toEqual([]);
  expect(new Set(only?.values)).toEqual(new Set([0]));
});

test("what is not billed is a level of its own, behind all groups, however many there are", () => {
  const clusters = Array.from({ length: GROUPS_MAX + 3 }, (_, index) => `cl_${String(index)}`);
  const items = clusters.map((id, index) => item(13, index + 1, { cluster_id: id }));
  const free = item(13, 1_000, { billed: false, cluster_id: "cl_0" });
  const shown = levels([...items, free], "cluster");
  expect(shown.map(({ key }) => key).slice(-2)).toEqual([OTHERS, NOT_BILLED]);
  expect(shown.at(-1)?.total).toBe(1_000n);
  expect(shown.at(-2)?.label).toBe("3 others");
  const broker = item(13, 60, { meter: "broker_seconds", billed: false });
  expect(levels([broker], "meter", "broker_seconds").map(({ key }) => key)).toEqual(["all"]);
});
