import { expect, test } from "vitest";
import type { Price, UsageItem } from "@/lib/api/types";
import { daysOf, drawnBudgets, forecastLine, growthOf } from "./growth";

const GIB = 1024 ** 3;
const month = "2026-11";
const now = new Date("2026-11-03T12:00:00Z");
const price = (
  meter: Price["meter"],
  unit: Price["unit"],
  unit_price: string,
  free_units: number,
): Price => ({
  meter,
  name: meter,
  unit,
  unit_price,
  free_units,
  free_unit: unit,
  base_unit: "",
});
const prices = [
  price("ingress_bytes", "GiB", "0.04", 10),
  price("storage_byte_minutes", "GiB-month", "0.06", 0),
];

function day(of: number, meter: UsageItem["meter"], quantity: number, billed = true): UsageItem {
  const start = Date.UTC(2026, 10, of);
  return {
    id: null,
    meter,
    unit: "byte",
    quantity: String(quantity),
    window_start: new Date(start).toISOString(),
    window_end: new Date(start + 86_400_000).toISOString(),
    provisional: false,
    billed,
    cluster_id: null,
    topic_id: null,
    topic: null,
    principal: null,
    principal_name: null,
  };
}

test("nothing is due before the free quantity is used up, and days to come are open", () => {
  const items = [1, 2, 3].map((of) => day(of, "ingress_bytes", 6 * GIB));
  const [ingress] = growthOf(items, prices, "USD", month, now);
  expect(ingress?.values.slice(0, 4)).toEqual([0, 8, 32, null]);
  expect(ingress?.values).toHaveLength(30);
});

test("what is not billed costs nothing", () => {
  const items = [day(1, "ingress_bytes", 100 * GIB, false)];
  expect(growthOf(items, prices, "USD", month, now)[0]?.values[2]).toBe(0);
});

test("storage is due by the month: a GiB all month is its price", () => {
  const end = new Date("2026-12-01T00:00:00Z");
  const items = daysOf(month).map((_, index) => day(index + 1, "storage_byte_minutes", GIB * 1440));
  const stored = growthOf(items, prices, "USD", month, end)[1];
  expect(stored?.values.at(-1)).toBeCloseTo(6);
  expect(stored?.values[14]).toBeCloseTo(3);
});

test("the forecast leads from today to the last day", () => {
  const line = forecastLine(month, 32, 320, now);
  expect(line[2]).toBe(32);
  expect(line[29]).toBe(320);
  expect(line.filter((value) => value !== null)).toHaveLength(2);
  const last = forecastLine(month, 310, 310, new Date("2026-11-30T08:00:00Z"));
  expect(last.filter((value) => value !== null)).toEqual([310]);
});

test("of many budgets those are drawn that are reached first", () => {
  const amounts = [900, 100, 500, 300, 700, 200];
  const drawn = drawnBudgets(amounts.map((amountMinor) => ({ amountMinor })));
  expect(drawn.map(({ amountMinor }) => amountMinor)).toEqual([100, 200, 300, 500]);
});
