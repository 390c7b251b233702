import { expect, test } from "vitest";
import { isLegible, legible, piecesOf } from "./legible";

test.each([
  ["a\u0000b", "a\\x00b"],
  ["\u202egnp.exe", "\\u202egnp.exe"],
  ["a\u200bb\ufeff", "a\\u200bb\\ufeff"],
  ["\u001b[31mred", "\\x1b[31mred"],
  ["a\r\n\tb", "a\\r\\n\\tb"],
  ["\u2066x\u2069", "\\u2066x\\u2069"],
  ["\ud800x", "\\ud800x"],
  ["a\u{e0041}", "a\\u{e0041}"],
])("%j is shown as %s", (text, shown) => {
  expect(legible(text)).toBe(shown);
  expect(isLegible(text)).toBe(false);
});

test.each(["orders", "שלום", "مرحبا", "日本語", "👩‍👩‍👧 family", "नमस्ते", "<b>bold</b>", "a/b%2F"])(
  "%s stays as it is",
  (text) => {
    expect(legible(text)).toBe(text);
    expect(isLegible(text)).toBe(true);
  },
);

test("lines of a text stay lines, and other controls do not", () => {
  expect(legible("a\n\tb\u0000\r\n", { lines: true })).toBe("a\n\tb\\x00\\r\n");
  expect(piecesOf("a\u0000b")).toEqual([
    { text: "a", escape: false },
    { text: "\\x00", escape: true },
    { text: "b", escape: false },
  ]);
});
