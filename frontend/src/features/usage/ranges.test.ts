import { describe, expect, test } from "vitest";
import { nextWindow, RANGES, resolveRange, windowMinutes, windowsOf, windowStart } from "./ranges";

const now = new Date("2026-11-21T14:05:30.250Z");
const iso = (at: Date): string => at.toISOString();

describe("a range that ends now", () => {
  test.each([
    ["1h", "2026-11-21T13:06:00.000Z", "2026-11-21T14:06:00.000Z", "minute", 60],
    ["24h", "2026-11-20T15:00:00.000Z", "2026-11-21T15:00:00.000Z", "hour", 24],
    ["30d", "2026-10-23T00:00:00.000Z", "2026-11-22T00:00:00.000Z", "day", 30],
    ["12mo", "2025-12-01T00:00:00.000Z", "2026-12-01T00:00:00.000Z", "month", 12],
  ] as const)("%s is whole windows with the present one last", (range, from, to, by, count) => {
    const resolved = resolveRange({ range }, now);
    expect(iso(resolved.from)).toBe(from);
    expect(iso(resolved.to)).toBe(to);
    expect(resolved.granularity).toBe(by);
    expect(windowsOf(resolved, now)).toHaveLength(count);
  });

  test("never has more windows than a chart can show", () => {
    for (const { value } of RANGES) {
      const count = windowsOf(resolveRange({ range: value }, now), now).length;
      expect(count).toBeGreaterThanOrEqual(12);
      expect(count).toBeLessThanOrEqual(180);
    }
  });
});

describe("two instants", () => {
  test("take the windows that they touch", () => {
    const range = resolveRange(
      { from: "2026-11-21T10:20:10Z", to: "2026-11-22T10:20:10Z", range: "1h" },
      now,
    );
    expect(range.granularity).toBe("hour");
    expect(iso(range.from)).toBe("2026-11-21T10:00:00.000Z");
    expect(iso(range.to)).toBe("2026-11-22T11:00:00.000Z");
    // A time in the future has no window yet.
    expect(windowsOf(range, now)).toHaveLength(5);
  });

  test("a whole month is shown by the day, to its last", () => {
    const range = resolveRange({ from: "2026-10-01T00:00:00Z", to: "2026-11-01T00:00:00Z" }, now);
    expect(range.granularity).toBe("day");
    expect(iso(range.to)).toBe("2026-11-01T00:00:00.000Z");
    expect(windowsOf(range, now)).toHaveLength(31);
  });

  test("out of order or not instants at all are as if not given", () => {
    const usual = resolveRange({}, now);
    expect(resolveRange({ from: "2026-11-22", to: "2026-11-21" }, now)).toEqual(usual);
    expect(resolveRange({ from: "soon", to: "later" }, now)).toEqual(usual);
  });
});

test("windows follow each other without gap or overlap, also over a leap day", () => {
  const leap = new Date("2028-02-28T23:59:59Z");
  for (const granularity of ["minute", "hour", "day", "month"] as const) {
    const next = nextWindow(leap, granularity);
    expect(windowStart(next, granularity)).toEqual(next);
    expect(windowStart(new Date(next.getTime() - 1), granularity)).toEqual(
      windowStart(leap, granularity),
    );
  }
  expect(windowMinutes(new Date("2028-02-01T00:00:00Z"), "month")).toBe(29 * 1440);
});
