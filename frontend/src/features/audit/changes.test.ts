import { expect, test } from "vitest";
import type { AuditEntry } from "@/lib/api/types";
import { changesOf, changeWords, detailWords } from "./changes";

const wordsOf = (detail: AuditEntry["detail"]): string => detailWords(detail).join(", ");

test("a change is said with the old and the new value", () => {
  expect(wordsOf({ threshold: { from: 10, to: 30 } })).toBe("threshold 10 → 30");
  expect(wordsOf({ idle_timeout_s: { from: 300, to: 60 } })).toBe("idle timeout s 300 → 60");
  expect(wordsOf({ deletion_protection: { from: true, to: false } })).toBe(
    "deletion protection true → false",
  );
});

test("what is inside of an object is said too", () => {
  const detail = {
    configs: {
      "retention.ms": { from: "604800000", to: "86400000" },
      "cleanup.policy": { from: "delete", to: "delete" },
    },
  };
  expect(wordsOf(detail)).toBe("retention.ms 604800000 → 86400000, cleanup.policy delete");
  expect(wordsOf({ offsets: { "pay_ments-0": { from: null, to: 0 } } })).toBe(
    "pay_ments-0 not set → 0",
  );
});

test("a value that was set or unset is no value that is empty", () => {
  expect(wordsOf({ reason: { from: null, to: "unpaid" } })).toBe("reason not set → unpaid");
  expect(wordsOf({ emails: { from: ["a@b.c", "d@e.f"], to: [] } })).toBe(
    "emails a@b.c, d@e.f → none",
  );
  expect(wordsOf({ labels: { from: {}, to: { team: "a" } } })).toBe('labels {} → {"team":"a"}');
});

test("what did not change is said after what did, and nothing of what is empty", () => {
  expect(wordsOf({ name: "a", role: { from: "viewer", to: "admin" }, gone: null })).toBe(
    "role viewer → admin, name a",
  );
  expect(wordsOf({ revoked_keys: [], answer: "" })).toBe("");
});

test("what was read is said by partition, with its counts", () => {
  const offsets = { "orders-0": ["0-49", "60"], "orders-3": ["7-8"] };
  expect(wordsOf({ pages: 4, offsets, records: 53, records_read: 90 })).toBe(
    "pages 4, orders-0 0-49, 60, orders-3 7-8, records 53, records read 90",
  );
});

test("a line has so many values, and says that there are more", () => {
  const offsets = Object.fromEntries(
    Array.from({ length: 20 }, (_, at) => [`t-${String(at)}`, { from: at, to: 0 }]),
  );
  expect(wordsOf({ offsets })).toMatch(/^t-1 1 → 0, .*, and 14 more$/);
  expect(changesOf({ offsets })).toHaveLength(20);
});

test("an object that only looks like a change is none", () => {
  expect(changesOf({ spec: { from: 1, to: 2, by: 3 } }).map(changeWords)).toEqual([
    "from 1",
    "to 2",
    "by 3",
  ]);
});
