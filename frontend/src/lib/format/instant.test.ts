import { expect, test } from "vitest";
import {
  formatInstant,
  formatMinute,
  instantOf,
  parseInstant,
  readField,
  writeField,
  zoneName,
} from "./instant";

const at = new Date("2026-03-01T13:05:09.120Z");

test("an instant has its zone", () => {
  expect(formatInstant(at, "utc")).toBe("2026-03-01 13:05:09.120 UTC");
  expect(formatMinute(at, "utc")).toBe("2026-03-01 13:05 UTC");
  expect(formatInstant(at, "local")).toMatch(/ UTC([+−]\d\d:\d\d)?$/);
});

test("a zone is named by its distance from UTC at that instant", () => {
  const zone = (minutes: number): string =>
    zoneName({ getTimezoneOffset: () => -minutes } as Date, "local");
  expect([zone(0), zone(60), zone(-210), zone(345)]).toEqual([
    "UTC",
    "UTC+01:00",
    "UTC−03:30",
    "UTC+05:45",
  ]);
});

test("what a page shows of an instant is read again, in every zone", () => {
  for (const zone of ["utc", "local"] as const) {
    expect(parseInstant(formatInstant(at, zone), "utc")).toEqual(at);
    expect(parseInstant(formatInstant(at, zone), "local")).toEqual(at);
    const second = new Date("2026-03-01T13:05:09Z");
    expect(readField(writeField(second, zone), zone)).toEqual(second);
  }
});

test("instants are taken as logs have them", () => {
  const second = new Date("2026-03-01T13:05:09Z");
  for (const text of [
    "2026-03-01T13:05:09Z",
    "2026-03-01T14:05:09+01:00",
    "2026-03-01 13:05:09 UTC",
    "1772370309000",
  ]) {
    expect(parseInstant(text, "local"), text).toEqual(second);
  }
  expect(parseInstant("2026-03-01", "utc")).toEqual(new Date("2026-03-01T00:00:00Z"));
  for (const wrong of ["", "yesterday", "2026-13-01", "2026-03-01 25:00", "12"]) {
    expect(parseInstant(wrong, "utc"), wrong).toBeUndefined();
  }
});

test("a number of milliseconds that no calendar has is no instant", () => {
  expect(instantOf("1")).toEqual(new Date(1));
  expect(instantOf("-1")).toEqual(new Date(-1));
  expect(instantOf("9223372036854775807")).toBeNull();
  expect(instantOf("-9223372036854775808")).toBeNull();
  expect(formatInstant(new Date("-000044-03-15T12:00:00Z"), "utc")).toContain("−0044-03-15");
});
