import { expect, test } from "vitest";
import { failingParts } from "./readiness";

test("only what is not ready is named", () => {
  const parts = {
    database: { ready: true, message: "" },
    queue: { ready: false, message: "refused" },
  };
  expect(failingParts({ ready: false, parts })).toEqual(["queue"]);
});
