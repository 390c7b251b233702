import { expect, test } from "vitest";
import { DEPTH_MAX, layOutJson } from "./json";

test("numbers, keys and strings stay as they are written", () => {
  const text =
    '{"id":73314510714175489,"b":1.50,"10":1E+3,"2":-0,"b":[1e999],' +
    String.raw`"s":"\u00e9\/\"}{"}`;
  expect(layOutJson(text)).toBe(
    [
      "{",
      '  "id": 73314510714175489,',
      '  "b": 1.50,',
      '  "10": 1E+3,',
      '  "2": -0,',
      '  "b": [',
      "    1e999",
      "  ],",
      String.raw`  "s": "\u00e9\/\"}{"`,
      "}",
    ].join("\n"),
  );
  expect(layOutJson(" 12345678901234567890 ")).toBe("12345678901234567890");
});

const VALUES: unknown[] = [
  [],
  {},
  "a, b: {c} [d]",
  null,
  true,
  -1.5,
  [[], {}, [[]], [{}], { a: {} }],
  { a: [], b: { c: [1, "2", false, null] }, "": { "k:": ["\\", '"', "\\\\", "\n\t", "é, 🦀"] } },
  [1, 2, [3, { four: 4 }]],
];

test("it is laid out as JSON.stringify does", () => {
  for (const value of VALUES) {
    const expected = JSON.stringify(value, null, 2);
    expect(layOutJson(JSON.stringify(value))).toBe(expected);
    expect(layOutJson(`\r\n\t ${expected} `)).toBe(expected);
  }
});

test("what is not JSON is not laid out", () => {
  for (const text of ["", "a", "{", '{"a":1,}', "[1 2]", "01", "NaN", "'a'", '{"a":1}{"a":2}']) {
    expect(layOutJson(text)).toBeNull();
  }
});

test("nesting has a bound, and no length of a string or list has one", () => {
  const nested = (levels: number): string => "[".repeat(levels) + "]".repeat(levels);
  expect(layOutJson(nested(DEPTH_MAX))).not.toBeNull();
  expect(layOutJson(nested(DEPTH_MAX + 1))).toBeNull();
  expect(layOutJson(nested(30_000))).toBeNull();
  const long = JSON.stringify([String.raw`\"`.repeat(30_000), ...Array<number>(30_000).fill(1)]);
  expect(layOutJson(long)).toBe(JSON.stringify(JSON.parse(long), null, 2));
});
