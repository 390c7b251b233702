import { expect, test } from "vitest";
import { expiresAt } from "./overlaps";

test("a life is counted from now, and never is null", () => {
  const now = new Date("2026-02-27T12:00:00Z");
  expect(expiresAt("", now)).toBeNull();
  expect(expiresAt("7", now)).toBe("2026-03-06T12:00:00.000Z");
});
