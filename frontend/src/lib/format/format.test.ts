import { describe, expect, test } from "vitest";
import { formatBytes, formatCount, formatNumber } from "./bytes";
import { formatLag, formatLagSeconds, sumLag } from "./lag";
import { formatAge, formatDuration, formatRelative } from "./time";

describe("bytes and counts", () => {
  test.each([
    [0, "0 B"],
    [1023, "1023 B"],
    [1024, "1.0 KiB"],
    [1536, "1.5 KiB"],
    [102_400, "100 KiB"],
    [1_048_575, "1.0 MiB"],
    [5 * 1024 ** 4, "5.0 TiB"],
    [-2048, "-2.0 KiB"],
  ])("%d is %s", (bytes, text) => {
    expect(formatBytes(bytes)).toBe(text);
  });

  test("counts are grouped by thousands", () => {
    expect(formatCount(1_234_567).split("\u202f")).toEqual(["1", "234", "567"]);
    expect(formatCount(999)).toBe("999");
    expect(formatNumber(1, "record")).toBe("1 record");
    expect(formatNumber(0, "record")).toBe("0 records");
  });
});

describe("time", () => {
  test.each([
    [0, "0 s"],
    [0.25, "250 ms"],
    [59, "59 s"],
    [3_600, "1 h"],
    [3_700, "1 h 1 min"],
    [86_400 * 7, "7 d"],
    [86_461, "1 d"],
    [-90, "-1 min 30 s"],
  ])("%d seconds are %s", (seconds, text) => {
    expect(formatDuration(seconds)).toBe(text);
  });

  test("relative times look both ways", () => {
    const now = new Date("2026-03-01T12:00:00Z");
    expect(formatRelative(new Date("2026-03-01T11:59:48Z"), now)).toBe("12 s ago");
    expect(formatRelative(new Date("2026-03-01T12:03:00Z"), now)).toBe("in 3 min");
    expect(formatRelative(now, now)).toBe("now");
    expect(formatRelative(new Date("2026-03-01T12:00:03Z"), now)).toBe("now");
    expect(formatRelative(new Date("2026-03-01T12:00:13Z"), now)).toBe("in 13 s");
  });

  test("a day away or more there is a date, not a distance", () => {
    const now = new Date("2026-03-01T12:00:00Z");
    expect(formatRelative(new Date(1), now)).toBeNull();
    expect(formatRelative(new Date("2026-02-28T12:00:00Z"), now)).toBeNull();
    expect(formatRelative(new Date("2026-02-28T12:00:01Z"), now)).toBe("23 h ago");
    expect(formatAge(new Date("2026-02-27T12:00:00Z"), now)).toBe("2 d");
  });
});

describe("lag", () => {
  test("what is unknown is not zero", () => {
    expect(formatLag(null)).toBe("–");
    expect(formatLagSeconds(null)).toBe("–");
    expect(formatLag(0)).toBe("0");
    expect(formatLagSeconds(0)).toBe("0 s");
  });

  test("records add up, and the worst seconds count", () => {
    const sum = sumLag([
      { lag: "5", lag_seconds: 2.5 },
      { lag: null, lag_seconds: null },
      { lag: "7", lag_seconds: 40 },
    ]);
    expect(sum).toEqual({ lag: "12", lag_seconds: 40 });
    expect(sumLag([])).toEqual({ lag: null, lag_seconds: null });
  });
});
