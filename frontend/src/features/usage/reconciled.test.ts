import { expect, test } from "vitest";
import type { ReconciledDay } from "@/lib/api/types";
import { difference, summaryOf } from "./reconciled";

const day = (given: Partial<ReconciledDay>): ReconciledDay => ({
  id: "rcd_a",
  cluster_id: "cl_a",
  day: "2026-11-20",
  agreement: "equal",
  metered_bytes: "1000",
  logged_bytes: "1000",
  unknown_bytes: "0",
  differing_partitions: 0,
  ...given,
});

test("the worst day counts, and a day of two clusters is one", () => {
  expect(summaryOf([])).toBeUndefined();
  expect(summaryOf([day({}), day({ cluster_id: "cl_b" })])).toEqual({
    agreement: "equal",
    days: 1,
  });
  const days = [day({}), day({ day: "2026-11-19", agreement: "partly_known" })];
  expect(summaryOf(days)).toEqual({ agreement: "partly_known", days: 2 });
  expect(summaryOf([...days, day({ agreement: "different" })])?.agreement).toBe("different");
});

test("a difference has its sign and every byte", () => {
  expect(difference(day({}))).toBe("0");
  expect(difference(day({ metered_bytes: "1012" }))).toBe("+12");
  expect(difference(day({ logged_bytes: "3001000" }))).toBe("−3\u202f000\u202f000");
});
