import { expect, test } from "vitest";
import { problemCodes } from "@/testing/contract";
import { HINTS } from "./hints";
import { explain, Problem } from "./problem";

const CODES = Object.entries(problemCodes());
const problem = (code: string, status: number, method = "POST"): Problem =>
  new Problem({ status, code, title: "Refused", method });

test("every code of the API has a hint of its own, and there is no other hint", () => {
  expect(CODES.length).toBeGreaterThan(80);
  expect(Object.keys(HINTS).sort()).toEqual(CODES.map(([code]) => code).sort());
  const hints = CODES.map(([code, { statuses }]) => explain(problem(code, statuses[0] ?? 0)).next);
  expect(hints.filter((hint, at) => hints.indexOf(hint) !== at)).toEqual([]);
});

test.each([
  ["group_active", 409, /Stop the group's consumers and wait until its state is Empty/],
  ["cluster_asleep", 409, /Wake the cluster/],
  ["cluster_starting", 503, /is waking/],
  ["kafka_unreadable", 502, /skip the damaged batch/],
  ["not_damaged", 409, /nothing to skip here/],
  ["outcome_unknown", 503, /whether the change was made/],
  ["operation_in_progress", 409, /Wait until the other operation has ended/],
])("%s says what helps", (code, status, hint) => {
  expect(explain(problem(code, status)).next).toMatch(hint);
});

test("what was refused before anything was changed says so, whatever the status", () => {
  const unsure = "may or may not have been made";
  expect(explain(problem("cluster_starting", 503)).kept).toBe("Nothing was changed.");
  expect(explain(problem("no_capacity", 503)).kept).toBe("Nothing was changed.");
  expect(explain(problem("outcome_unknown", 503)).kept).toContain(unsure);
  expect(explain(problem("unavailable", 503)).kept).toContain(unsure);
});

test("a code of a newer service is explained by its status", () => {
  expect(explain(problem("invented_later", 409)).next).toContain("Reload");
  expect(explain(problem("invented_later", 503)).next).toContain("report the request id");
  expect(explain(problem("constructor", 401)).next).toBe("Sign in again.");
});
