import { expect, test } from "vitest";
import type { Budget } from "@/lib/api/types";
import {
  consequences,
  editRate,
  eventWords,
  parseRate,
  parseThresholds,
  spentPercent,
  thresholdWords,
} from "./words";

const budget = (spent_minor: number, amount_minor: number): Budget => ({
  id: "bud_1",
  name: "Team",
  amount_minor,
  currency: "USD",
  thresholds: [50, 100],
  action: "notify",
  state: "ok",
  month: "2026-11",
  spent_minor,
  suspended_at: null,
  throttled_at: null,
  throttle_bytes_per_s: null,
  covers_all_until: null,
  kept_minor: 0,
  evaluated_at: "2026-11-01T00:00:00Z",
  events: [],
  generation: 1,
  created_at: "2026-11-01T00:00:00Z",
});

test("a share is never rounded up to what was not reached", () => {
  expect(spentPercent(budget(9_999, 10_000))).toBe(99);
  expect(spentPercent(budget(10_000, 10_000))).toBe(100);
  expect(spentPercent(budget(1, 10_000))).toBe(1);
  expect(spentPercent(budget(0, 10_000))).toBe(0);
  expect(spentPercent(budget(0, 0))).toBe(100);
});

test("thresholds are whole percents, each once", () => {
  expect(parseThresholds(["80", " 50", "80"])).toEqual([50, 80]);
  for (const wrong of [[], ["0"], ["1001"], ["50 %"], ["half"]]) {
    expect(parseThresholds(wrong)).toBeNull();
  }
  expect(thresholdWords([100, 50, 80])).toBe("50, 80 and 100 %");
  expect(thresholdWords([100])).toBe("100 %");
});

test("what an action does is said with the amount", () => {
  const [first, ...more] = consequences("suspend", 5_000, "USD");
  expect(first).toContain("$50.00");
  expect(first).toContain("POLICY_VIOLATION");
  expect(more.join(" ")).toContain("Storage and partitions go on being billed");
  const slow = consequences("throttle", 5_000, "USD").join(" ");
  expect(slow).toContain("$50.00");
  expect(slow).toContain("goes on being billed");
});

test("rates are typed in KiB a second", () => {
  expect(parseRate("64")).toBe(65_536);
  for (const wrong of ["63", "", "1.5", "-64", "99999999999"]) expect(parseRate(wrong)).toBeNull();
  expect(editRate(null)).toBe("1024");
  expect(editRate(524_288)).toBe("512");
});

test("events say what happened", () => {
  expect(eventWords({ kind: "threshold_reached", threshold: 80 })).toBe("80 % reached, mail sent");
  expect(eventWords({ kind: "suspended", threshold: null })).toBe("Traffic refused");
});
