import { describe, expect, test } from "vitest";
import {
  exactQuantity,
  formatDecimal,
  formatQuantity,
  formatPriced,
  formatUnits,
  inUnits,
} from "./meters";
import { editMoney, formatMoney, formatUnitPrice, parseMoney } from "./money";
import { formatWindow, minutesOfMonth, monthBefore, monthName, timeTick } from "./utc";

describe("money", () => {
  test.each([
    [0, "USD", "$0.00"],
    [5, "USD", "$0.05"],
    [123_456, "USD", "$1,234.56"],
    [-4_210, "USD", "−$42.10"],
    [1_234, "JPY", "¥1,234"],
    [9_007_199_254_740_991, "USD", "$90,071,992,547,409.91"],
  ])("%d minor units of %s are %s", (minor, currency, text) => {
    expect(formatMoney(minor, currency)).toBe(text);
  });

  test.each([
    ["0.040000000000000000", "$0.04"],
    ["0.0005", "$0.0005"],
    ["4", "$4.00"],
    ["1200.5", "$1,200.50"],
  ])("the unit price %s is %s", (price, text) => {
    expect(formatUnitPrice(price, "USD")).toBe(text);
  });

  test.each([
    ["12", 1_200],
    ["12.5", 1_250],
    [" 1,250.07 ", 125_007],
    ["0.1", 10],
    ["12.345", null],
    ["-3", null],
    ["", null],
    ["a lot", null],
  ])("typed %s is %s", (text, minor) => {
    expect(parseMoney(text, "USD")).toBe(minor);
  });

  test("what a form shows is read back as the same amount", () => {
    for (const minor of [0, 7, 100, 1_250, 99_999_999]) {
      expect(parseMoney(editMoney(minor, "USD"), "USD")).toBe(minor);
      expect(parseMoney(editMoney(minor, "JPY"), "JPY")).toBe(minor);
    }
  });
});

describe("quantities", () => {
  test("what is counted in time is shown as its mean", () => {
    expect(formatQuantity("storage_byte_minutes", 1024 * 60, 60)).toBe("1.0 KiB");
    expect(formatQuantity("partition_minutes", 90, 60)).toBe("1.5");
    expect(formatQuantity("ingress_bytes", 2048, 60)).toBe("2.0 KiB");
    expect(formatQuantity("broker_seconds", 3_600, 60)).toBe("1 h");
  });

  test("the exact value has all of its digits, or says that it has not", () => {
    expect(exactQuantity("ingress_bytes", 1_234_567)).toBe("1\u202f234\u202f567 bytes");
    expect(exactQuantity("ingress_bytes", 1)).toBe("1 byte");
    expect(exactQuantity("storage_byte_minutes", "1267650600228229401496703205377")).toMatch(
      /^1\u202f267\u202f.*\u202f205\u202f377 byte-minutes$/,
    );
  });

  test("a full month of a GiB is one GiB-month, however long the month is", () => {
    for (const month of ["2026-02", "2024-02", "2026-11", "2026-12"]) {
      const minutes = minutesOfMonth(month);
      expect(inUnits(1024 ** 3 * minutes, "GiB-month", minutes)).toBe(1);
      expect(inUnits(minutes, "partition-month", minutes)).toBe(1);
    }
    expect(inUnits(120, "partition-hour", 43_200)).toBe(2);
    expect(inUnits(1024 ** 3 / 2, "GiB", 43_200)).toBe(0.5);
    expect(formatUnits(2.5, "GiB-month")).toBe("2.5 GiB-months");
    expect(formatUnits(1, "partition-hour")).toBe("1 partition-hour");
    expect(formatUnits(3, "GiB")).toBe("3 GiB");
    expect(formatPriced(552, "GiB", 43_200)).toBe("552 B");
    expect(formatPriced(90, "partition-hour", 43_200)).toBe("1.5 partition-hours");
  });

  test("decimals are short, and a little is not nothing", () => {
    expect(formatDecimal(0)).toBe("0");
    expect(formatDecimal(0.004)).toBe("< 0.01");
    expect(formatDecimal(2.5)).toBe("2.5");
    expect(formatDecimal(12_345.678)).toBe("12\u202f345.68");
  });
});

describe("UTC", () => {
  const at = (text: string): Date => new Date(text);

  test.each([
    ["2026-11-21T14:05:00Z", "2026-11-21T14:06:00Z", "21 Nov, 14:05"],
    ["2026-11-21T14:00:00Z", "2026-11-21T15:00:00Z", "21 Nov, 14:00–15:00"],
    ["2026-11-21T00:00:00Z", "2026-11-22T00:00:00Z", "21 Nov 2026"],
    ["2026-11-01T00:00:00Z", "2026-12-01T00:00:00Z", "Nov 2026"],
    ["2026-11-01T00:00:00Z", "2026-11-08T00:00:00Z", "1 Nov 2026 – 7 Nov 2026"],
  ])("%s to %s is %s", (start, end, words) => {
    expect(formatWindow(at(start), at(end))).toBe(words);
  });

  test("months have names and neighbours", () => {
    expect(monthName("2026-11")).toBe("November 2026");
    expect(monthBefore("2026-01")).toBe("2025-12");
    expect(minutesOfMonth("2026-02")).toBe(28 * 1440);
  });

  test("a tick names what is new at it", () => {
    const midnight = Date.UTC(2026, 10, 21) / 1000;
    expect(timeTick(midnight, 3_600)).toBe("21 Nov");
    expect(timeTick(midnight + 3_600, 3_600)).toBe("01:00");
    expect(timeTick(midnight, 30 * 86_400)).toBe("Nov 2026");
  });
});
