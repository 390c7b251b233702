import { expect, test } from "vitest";
import { failingParts } from "./readiness";

test("only what is not ready is named", () => {
  expect(failingParts({ database: "ok", redis: "down" })).toEqual(["redis"]);
  expect(failingParts({ status: "x", parts: { a: { ready: true }, b: { ok: false } } })).toEqual([
    "b",
  ]);
  expect(failingParts(null)).toEqual([]);
});
