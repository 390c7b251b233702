import { expect, test } from "vitest";
import type { Alert, AlertKind } from "@/lib/api/types";
import {
  alertsOfGroup,
  conditionWords,
  durations,
  formatFigure,
  KINDS,
  parseFigure,
  shownStateOf,
  subjectOf,
  writeFigure,
} from "./figures";

const alert = (given: Partial<Alert>): Alert => ({
  id: "alr_1",
  cluster_id: "cl_1",
  name: "Checkout falls behind",
  kind: "group_lag_seconds",
  group: "checkout",
  threshold: "60",
  for_s: 300,
  emails: [],
  state: "ok",
  since: "2026-11-21T15:05:00Z",
  changed_at: "2026-11-21T15:05:00Z",
  back_since: null,
  fired_at: null,
  fired_subject: "",
  value: "3",
  subject: "checkout",
  evaluated_at: "2026-11-21T15:06:00Z",
  generation: 1,
  created_at: "2026-11-20T09:00:00Z",
  ...given,
});

test("a figure is read as it is written, of every kind", () => {
  for (const { value: kind } of KINDS) {
    for (const figure of ["0", "1", "90", "3600", "86400", "90061", "10737418240"]) {
      expect(parseFigure(kind, writeFigure(kind, figure))).toBe(figure);
    }
  }
});

test("thresholds are typed as people write them", () => {
  const cases: [AlertKind, string, string | undefined][] = [
    ["group_lag", "1 000", "1000"],
    ["group_lag", "9\u202f007\u202f199\u202f254\u202f740\u202f993", "9007199254740993"],
    ["group_lag", "many", undefined],
    ["group_lag_seconds", "90", "90"],
    ["group_lag_seconds", "5 min", "300"],
    ["group_lag_seconds", "1 h 30 min", "5400"],
    ["group_lag_seconds", "5 parsecs", undefined],
    ["storage_bytes", "1.5 GiB", "1610612736"],
    ["storage_bytes", "9007199254740993", "9007199254740993"],
    ["storage_growth_bytes", "", undefined],
    ["connections", "-1", undefined],
  ];
  for (const [kind, text, figure] of cases) expect(parseFigure(kind, text)).toBe(figure);
});

test("an alert is said in one line", () => {
  expect(conditionWords(alert({}))).toBe("Lag of checkout above 1 min for 5 min");
  expect(conditionWords(alert({ kind: "group_lag", group: "", threshold: "1", for_s: 0 }))).toBe(
    "Lag of any group above 1 record, at once",
  );
  expect(conditionWords(alert({ kind: "storage_bytes", group: "", threshold: "2048" }))).toBe(
    "Stored bytes above 2.0 KiB for 5 min",
  );
  expect(formatFigure("connections", 1)).toBe("1 connection");
});

test("what is not known is not said to be well", () => {
  expect(shownStateOf(alert({}))).toBe("ok");
  expect(shownStateOf(alert({ value: null }))).toBe("unknown");
  expect(shownStateOf(alert({ value: null, evaluated_at: null }))).toBe("new");
  expect(shownStateOf(alert({ value: null, state: "firing" }))).toBe("firing");
  expect(shownStateOf(alert({ state: "pending" }))).toBe("pending");
});

test("an alert names whose figure it is, and while it fires whose it was", () => {
  const of = (given: Partial<Alert>) => subjectOf(alert({ group: "", ...given })).join("");
  const overtaken = { subject: "billing", fired_subject: "checkout" };
  expect(of({ ...overtaken, state: "firing" })).toBe("checkout, now billing");
  expect(of({ ...overtaken, state: "pending" })).toBe("billing");
  expect(of({ ...overtaken, state: "firing", subject: "checkout" })).toBe("checkout");
  const unknown = { subject: "", fired_subject: "checkout", value: null };
  expect(of({ ...unknown, state: "firing" })).toBe("checkout");
  expect(of({ ...unknown, state: "ok" })).toBe("");
});

test("a group is looked at by its name and by what looks at the worst", () => {
  const all = [
    alert({ id: "alr_1" }),
    alert({ id: "alr_2", group: "" }),
    alert({ id: "alr_3", group: "other" }),
    alert({ id: "alr_4", kind: "connections", group: "" }),
    alert({ id: "alr_5", cluster_id: "cl_2" }),
  ];
  expect(alertsOfGroup(all, "cl_1", "checkout").map(({ id }) => id)).toEqual(["alr_1", "alr_2"]);
});

test("the duration that is set is among the choices", () => {
  expect(durations(300)).toHaveLength(durations(0).length);
  expect(durations(77).map(({ value }) => value)).toContain("77");
  expect(durations(0)[0]).toEqual({ value: "0", label: "At once" });
});
