import { expect, test } from "vitest";
import type { Group } from "@/lib/api/types";
import { choiceComplaint, deletionOf, totalOf, unreadBy } from "./deleting";

test("a choice becomes offsets of partitions", () => {
  expect(deletionOf({ partitions: [], before: "" }, 2).partitions).toEqual([
    { partition: 0, before_offset: "-1" },
    { partition: 1, before_offset: "-1" },
  ]);
  expect(deletionOf({ partitions: ["10", "9"], before: "42" }, 12).partitions).toEqual([
    { partition: 9, before_offset: "42" },
    { partition: 10, before_offset: "42" },
  ]);
});

test("only whole numbers are offsets", () => {
  expect(choiceComplaint({ partitions: [], before: "" })).toBeNull();
  expect(choiceComplaint({ partitions: [], before: "42" })).toBeNull();
  for (const wrong of ["-1", "1.5", "all"]) {
    expect(choiceComplaint({ partitions: [], before: wrong }), wrong).not.toBeNull();
  }
});

test("who has not read what goes is named with how much they miss", () => {
  const plan = [
    { partition: 0, low_watermark: "100", deleted_offsets: "40" },
    { partition: 1, low_watermark: "10", deleted_offsets: "10" },
  ];
  const place = (topic: string, partition: number, committed: number | null) => ({
    topic,
    partition,
    committed: committed === null ? null : String(committed),
    end: "100",
    lag: null,
    lag_seconds: null,
  });
  const group = (name: string, partitions: Group["partitions"]) =>
    ({ group: name, partitions }) as Group;
  const groups = [
    group("done", [place("t", 0, 100), place("t", 1, 10)]),
    group("behind", [place("t", 0, 95), place("t", 1, 0)]),
    group("far behind", [place("t", 0, 3)]),
    group("elsewhere", [place("other", 0, 0)]),
    group("never committed", [place("t", 0, null)]),
  ];
  expect(unreadBy(plan, groups, "t")).toEqual([
    { group: "far behind", records: 40n },
    { group: "behind", records: 15n },
  ]);
  expect(totalOf(plan)).toBe(50n);
});
