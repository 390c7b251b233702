import { expect, test } from "vitest";
import type { Message, RecordBytes } from "@/lib/api/types";
import { prepend, streamUrl, TAIL_MAX } from "./api/useTail";
import { bytesOf, hexDump, oneLine, prettyJson } from "./bytes";

const content = (bytes: string, text: string | null = bytes): RecordBytes => ({
  base64: btoa(bytes),
  text,
  size: bytes.length,
  truncated: false,
});

const message = (offset: number): Message => ({
  partition: 0,
  offset,
  timestamp_ms: 0,
  timestamp_type: "CreateTime",
  key: null,
  value: null,
  headers: [],
  size: 0,
});

test("only JSON is laid out as JSON", () => {
  expect(prettyJson(content('{"a":1}'))).toBe('{\n  "a": 1\n}');
  expect(prettyJson(content('{"id":73314510714175489}'))).toBe('{\n  "id": 73314510714175489\n}');
  expect(prettyJson(content("a: 1"))).toBeNull();
  expect(prettyJson(content("\xff", null))).toBeNull();
  expect(prettyJson({ ...content('{"a":1}'), truncated: true })).toBeNull();
});

test("a hex dump shows places, bytes and what can be printed", () => {
  const lines = hexDump(bytesOf(content("Freshet\x00 0123456789"))).split("\n");
  expect(lines[0]).toBe(
    "000000  46 72 65 73 68 65 74 00 20 30 31 32 33 34 35 36  Freshet. 0123456",
  );
  expect(lines[1]?.trimEnd().endsWith("789")).toBe(true);
});

test("a table's line has no breaks, and bytes that are no text are hex", () => {
  expect(oneLine(content("a\n  b"))).toBe("a b");
  expect(oneLine(content("\xff\x00", null))).toBe("0xff00");
  expect(oneLine(null)).toBe("null");
});

test("a tail shows the newest first and forgets the oldest", () => {
  const shown = prepend([message(1)], [message(2), message(3)]);
  expect(shown.map((m) => m.offset)).toEqual([3, 2, 1]);
  const many = Array.from({ length: TAIL_MAX }, (_, offset) => message(offset));
  expect(prepend(many, [message(9)])).toHaveLength(TAIL_MAX);
});

test("a stream's address holds any name and filter, and wakes only when asked", () => {
  const plain = streamUrl("cl_a", "a.b", false, undefined);
  expect(plain).toBe("/api/v1/clusters/cl_a/topics/a.b/messages/stream");
  expect(streamUrl("cl_a", "a/b", true, undefined)).toContain("/a%2Fb/messages/stream?wake=true");
  expect(streamUrl("cl_a", "a", true, "a&b > 1")).toContain("?wake=true&filter=a%26b+%3E+1");
});
