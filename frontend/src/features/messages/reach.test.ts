import { expect, test } from "vitest";
import { beyondWords, goneWords } from "./reach";

const at = (offset: string) => ({ from: "offset", offset }) as const;
const FIRST = { partition: 0, begin: "12", end: "42" };

test("an offset beyond the end is named with what there is", () => {
  expect(beyondWords(at("77"), [FIRST])).toBe(
    "Offset 77 is not written yet: partition 0 has 12 to 41.",
  );
  expect(beyondWords(at("9007199254740993"), [{ ...FIRST, end: "9007199254740993" }])).toContain(
    "has 12 to 9\u202f007\u202f199\u202f254\u202f740\u202f992",
  );
  expect(beyondWords(at("5"), [{ partition: 3, begin: "5", end: "5" }])).toContain(
    "partition 3 is empty, and goes on at 5",
  );
  const many = Array.from({ length: 5 }, (_, partition) => ({ ...FIRST, partition }));
  expect(beyondWords(at("77"), many)).toContain("; and 2 more.");
});

test("an offset that a partition still has is not beyond the end", () => {
  expect(beyondWords(at("41"), [FIRST])).toBeUndefined();
  expect(beyondWords(at("77"), [FIRST, { partition: 1, begin: "0", end: "78" }])).toBeUndefined();
  expect(beyondWords({ from: "newest" }, [FIRST])).toBeUndefined();
  expect(beyondWords(at("77"), [])).toBeUndefined();
});

test("an offset that is no longer kept is named", () => {
  expect(goneWords(at("5"), [FIRST])).toBe(
    "Offset 5 was deleted or has expired: partition 0 begins at 12.",
  );
  expect(goneWords(at("12"), [FIRST])).toBeUndefined();
  expect(goneWords({ from: "oldest" }, [FIRST])).toBeUndefined();
});
