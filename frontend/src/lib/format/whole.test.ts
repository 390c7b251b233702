import { expect, test } from "vitest";
import { formatCount } from "./bytes";
import { big, compareWhole, INT64_MAX, parseWhole } from "./whole";

test("no digit is lost beyond what a double holds", () => {
  expect(formatCount("9007199254740993").replaceAll("\u202f", "")).toBe("9007199254740993");
  expect(formatCount("9223372036854775807").split("\u202f")[6]).toBe("807");
  expect(big("-9223372036854775808")).toBe(-(INT64_MAX + 1n));
  expect(compareWhole("9007199254740993", "9007199254740992")).toBe(1);
  expect(["10", "9", "-1"].sort(compareWhole)).toEqual(["-1", "9", "10"]);
});

test.each(["1\u202f234\u202f567", "1,234,567", "1 234 567", "1'234'567", " 1234567 ", "1.234.567"])(
  "%s is taken as it was copied",
  (text) => {
    expect(parseWhole(text)).toBe("1234567");
  },
);

test("what the page shows of a number, a form takes", () => {
  for (const number of ["0", "999", "1000", "9007199254740993", "-12345"]) {
    expect(parseWhole(formatCount(number))).toBe(number);
  }
  expect(parseWhole("\u22125")).toBe("-5");
});

test.each(["", "1.5", "1,5", "abc", "0x10", "1e3", "12,34"])("%s is no whole number", (text) => {
  expect(parseWhole(text)).toBeUndefined();
});
