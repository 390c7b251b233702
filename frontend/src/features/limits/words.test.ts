import { expect, test } from "vitest";
import { formatLimit, limitLabel, usedShare } from "./words";

test("limits have names for people", () => {
  expect(limitLabel("wakes_per_minute")).toBe("Wakes per minute");
  expect(limitLabel("api_requests_per_second")).toBe("API requests per second");
  expect(limitLabel("acls")).toBe("ACLs");
});

test("one of something has no plural", () => {
  expect(formatLimit(1, "brokers")).toBe("1 broker");
  expect(formatLimit(2, "brokers")).toBe("2 brokers");
  expect(formatLimit(1, "requests/s")).toBe("1 requests/s");
});

test("what is used of a limit is a share of it at most", () => {
  expect(usedShare({ used: 1, limit: 4 })).toBe(0.25);
  expect(usedShare({ used: 9, limit: 4 })).toBe(1);
  expect(usedShare({ used: null, limit: 4 })).toBeNull();
  expect(usedShare({ used: 0, limit: 0 })).toBeNull();
});
