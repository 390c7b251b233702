import { expect, test } from "vitest";
import type { Group } from "@/lib/api/types";
import { assignmentWords } from "./assignments";
import { groupsOfTopic } from "./ofTopic";
import { moveOf, resetBody, resetComplaint } from "./reset";

test("a reset is asked for only when it makes sense", () => {
  const choice = (kind: "offset" | "shift" | "timestamp", value: string) =>
    resetComplaint({ kind, value, topics: [] });
  expect(choice("offset", "12")).toBeNull();
  expect(choice("offset", "-1")).not.toBeNull();
  expect(choice("shift", "-1")).toBeNull();
  expect(choice("shift", "0")).not.toBeNull();
  expect(choice("timestamp", "")).not.toBeNull();
  expect(choice("timestamp", "2026-03-01T12:00")).toBeNull();
});

test("instants are sent as Unix milliseconds, and all topics by naming none", () => {
  const value = "2026-03-01T12:00:00Z";
  expect(resetBody({ kind: "timestamp", value, topics: [] }, true)).toEqual({
    to: "timestamp",
    value: Date.UTC(2026, 2, 1, 12),
    dry_run: true,
  });
  const named = resetBody({ kind: "earliest", value: "", topics: ["orders"] }, false);
  expect(named).toEqual({ to: "earliest", topics: ["orders"], dry_run: false });
});

test("a partition without a committed offset does not move, it begins", () => {
  const planned = { topic: "t", partition: 0, target: 5, lag_after: 0 };
  expect(moveOf({ ...planned, current: null })).toBeNull();
  expect(moveOf({ ...planned, current: 7 })).toBe(-2);
});

test("assignments are told by topic, in ranges", () => {
  const numbers = [0, 1, 2, 5];
  const assignments = numbers.map((partition) => ({ topic: "orders", partition }));
  expect(assignmentWords([...assignments, { topic: "clicks", partition: 3 }])).toBe(
    "orders 0–2, 5; clicks 3",
  );
  expect(assignmentWords([])).toBe("none");
});

test("a topic's groups count their lag in that topic alone", () => {
  const partition = { partition: 0, committed: 1, end: 4 };
  const group: Group = {
    group: "g",
    state: "Empty",
    type: "classic",
    protocol: "",
    members: [],
    lag: 103,
    lag_seconds: 60,
    partitions: [
      { ...partition, topic: "a", lag: 3, lag_seconds: 2 },
      { ...partition, topic: "b", lag: 100, lag_seconds: 60 },
    ],
  };
  expect(groupsOfTopic([group], "a")[0]).toMatchObject({ lag: 3, lag_seconds: 2 });
  expect(groupsOfTopic([group], "c")).toEqual([]);
});
