import { expect, test } from "vitest";
import type { UsageItem } from "@/lib/api/types";
import { filteredSums, monthOfRange, partWords, sumsOf } from "./sums";

function item(meter: UsageItem["meter"], quantity: string, more: Partial<UsageItem>): UsageItem {
  return {
    id: null,
    meter,
    unit: "byte",
    quantity,
    window_start: "2026-11-20T00:00:00Z",
    window_end: "2026-11-21T00:00:00Z",
    provisional: false,
    billed: true,
    cluster_id: null,
    topic_id: null,
    topic: null,
    principal: null,
    principal_name: null,
    ...more,
  };
}

const items = [
  item("egress_bytes", "9007199254740993", {}),
  item("egress_bytes", "2", { provisional: true }),
  item("egress_bytes", "700", { billed: false }),
  item("broker_seconds", "60", { billed: false }),
];
const unbilled = [
  item("egress_bytes", "600", { billed: false, principal: "User:__freshet" }),
  item("egress_bytes", "100", { billed: false, principal: "User:bob", provisional: true }),
  item("broker_seconds", "60", { billed: false }),
];

test("what is not billed is apart, with the reason, and no digit is lost", () => {
  const sums = sumsOf(items, unbilled);
  expect(
    sums.map(({ meter, part, quantity, provisional }) => [meter, part, quantity, provisional]),
  ).toEqual([
    ["egress_bytes", "billed", 9_007_199_254_740_995n, 2n],
    ["egress_bytes", "service", 600n, 0n],
    ["egress_bytes", "internal", 100n, 100n],
    ["broker_seconds", "never", 60n, 0n],
  ]);
  expect(sums.map(({ part }) => partWords(part))).toEqual([
    "billed",
    "not billed: Freshet itself",
    "not billed: internal topics",
    "never billed",
  ]);
});

test("it is apart without the reason while that is not known", () => {
  const sums = sumsOf(items, undefined);
  expect(sums.map(({ part, quantity }) => [part, quantity])).toEqual([
    ["billed", 9_007_199_254_740_995n],
    ["unbilled", 700n],
    ["never", 60n],
  ]);
});

test("the filter of the rows is that of their sums", () => {
  const sums = sumsOf(items, unbilled);
  const parts = (filter: object): string[] => filteredSums(sums, filter).map(({ part }) => part);
  expect(parts({ billed: true })).toEqual(["billed"]);
  expect(parts({ billed: false })).toEqual(["service", "internal", "never"]);
  expect(parts({ meter: "egress_bytes" })).toEqual(["billed", "service", "internal"]);
  expect(parts({ meter: "ingress_bytes" })).toEqual([]);
});

test("a range is a month only where it is all of one", () => {
  const range = (from: string, to: string) =>
    monthOfRange({ from: new Date(from), to: new Date(to), granularity: "day" });
  expect(range("2026-12-01", "2027-01-01")).toBe("2026-12");
  expect(range("2026-12-01", "2027-02-01")).toBeUndefined();
  expect(range("2026-12-02", "2027-01-01")).toBeUndefined();
});
