import { expect, test } from "vitest";
import { amountOf, dayOf, isOrganization } from "./money";

test("an amount is read in minor units of its currency", () => {
  expect(amountOf("12.50", "USD")).toBe(1250);
  expect(amountOf("1250", "JPY")).toBe(1250);
  expect(amountOf("0", "USD")).toBeNull();
  expect(amountOf("12.505", "USD")).toBeNull();
  expect(amountOf("12.50", "usd")).toBeNull();
  expect(amountOf("12.50", "")).toBeNull();
});

test("a day is read as its first instant in UTC", () => {
  expect(dayOf(" 2026-12-10 ")).toBe("2026-12-10T00:00:00Z");
  expect(dayOf("2026-02-30")).toBeNull();
  expect(dayOf("10.12.2026")).toBeNull();
  expect(dayOf("")).toBeNull();
});

test("an organization's id is no reference", () => {
  expect(isOrganization("org_3k2jq7v5xw4mzn6yt2ba")).toBe(true);
  expect(isOrganization("RF97 FR20 2600 0042")).toBe(false);
});
