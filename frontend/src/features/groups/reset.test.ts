import { expect, test } from "vitest";
import type { Group } from "@/lib/api/types";
import { assignmentWords } from "./assignments";
import { groupsOfTopic } from "./ofTopic";
import { moveOf, resetComplaint, resetRequest, undoRequests } from "./reset";

test("a reset is asked for only when it makes sense", () => {
  const choice = (kind: "offset" | "shift" | "timestamp", value: string) =>
    resetComplaint({ kind, value, topics: [] });
  expect(choice("offset", "12")).toBeNull();
  expect(choice("offset", "-1")).not.toBeNull();
  expect(choice("offset", "1\u202f234")).toBeNull();
  expect(choice("offset", "9007199254740993")).toBeNull();
  expect(choice("offset", "9223372036854775808")).not.toBeNull();
  expect(choice("shift", "-1")).toBeNull();
  expect(choice("shift", "0")).not.toBeNull();
  expect(choice("timestamp", "")).not.toBeNull();
  expect(choice("timestamp", "2026-03-01T12:00")).toBeNull();
});

test("instants are sent with their zone, and all topics by naming none", () => {
  const value = "2026-03-01T12:00:00Z";
  expect(resetRequest({ kind: "timestamp", value, topics: [] }, true)).toEqual({
    to: "timestamp",
    timestamp: "2026-03-01T12:00:00.000Z",
    dry_run: true,
  });
  const named = resetRequest({ kind: "shift", value: "-5", topics: ["orders"] }, false);
  expect(named).toEqual({
    to: "shift",
    shift: "-5",
    topics: [{ topic: "orders" }],
    dry_run: false,
  });
});

test("an offset is sent with every digit, as it was copied from the page", () => {
  const value = "9\u202f007\u202f199\u202f254\u202f740\u202f993";
  const request = resetRequest({ kind: "offset", value, topics: [] }, true);
  expect(request.offset).toBe("9007199254740993");
});

test("another group's place is copied by its name", () => {
  expect(resetComplaint({ kind: "group", value: "", topics: [] })).not.toBeNull();
  expect(resetRequest({ kind: "group", value: "other", topics: [] }, true)).toEqual({
    to: { group: "other" },
    dry_run: true,
  });
});

test("an undo names the former offsets, and leaves what had none", () => {
  const planned = { topic: "t", target: "0", lag_after: "0" };
  const undo = undoRequests([
    { ...planned, partition: 0, current: "7" },
    { ...planned, partition: 1, current: null },
    { ...planned, partition: 2, current: "7" },
    { ...planned, partition: 3, current: "0" },
    { ...planned, partition: 4, current: "9" },
  ]);
  expect(undo).toEqual([
    { to: "offset", offset: "7", topics: [{ topic: "t", partitions: [0, 2] }], dry_run: false },
    { to: "offset", offset: "9", topics: [{ topic: "t", partitions: [4] }], dry_run: false },
  ]);
});

test("a partition without a committed offset does not move, it begins", () => {
  const planned = { topic: "t", partition: 0, target: "5", lag_after: "0" };
  expect(moveOf({ ...planned, current: null })).toBeNull();
  expect(moveOf({ ...planned, current: "7" })).toBe(-2n);
});

test("assignments are listed by topic, in ranges", () => {
  const numbers = [0, 1, 2, 5];
  const assignments = numbers.map((partition) => ({ topic: "orders", partition }));
  const clicks = { topic: "clicks", partition: 3 };
  expect(assignmentWords({ assignments: [...assignments, clicks], truncated: false })).toBe(
    "orders 0–2, 5; clicks 3",
  );
  expect(assignmentWords({ assignments, truncated: true })).toBe("orders 0–2, 5; and more");
  expect(assignmentWords({ assignments: [], truncated: false })).toBe("none");
});

test("a topic's groups count their lag in that topic alone", () => {
  const partition = { partition: 0, committed: "1", end: "4" };
  const group: Group = {
    group: "g",
    state: "Empty",
    type: "classic",
    protocol: "",
    protocol_type: "consumer",
    members: [],
    lag: "103",
    lag_seconds: 60,
    sampled_at: null,
    partitions: [
      { ...partition, topic: "a", lag: "3", lag_seconds: 2 },
      { ...partition, topic: "b", lag: "100", lag_seconds: 60 },
    ],
  };
  expect(groupsOfTopic([group], "a")[0]).toMatchObject({ lag: "3", lag_seconds: 2 });
  expect(groupsOfTopic([group], "c")).toEqual([]);
});
