import { expect, test } from "vitest";
import { networksComplaint, networksOf } from "./addresses";

test("networks are typed one a line, or between commas", () => {
  expect(networksOf(" 203.0.113.0/24,\n2001:db8::/32\n")).toEqual([
    "203.0.113.0/24",
    "2001:db8::/32",
  ]);
  expect(networksOf(" \n")).toEqual([]);
});

test("an address without its length is no network", () => {
  expect(networksComplaint("203.0.113.0/24")).toBeNull();
  expect(networksComplaint("")).toBeNull();
  expect(networksComplaint("203.0.113.7")).toContain("203.0.113.7 is no network");
});
