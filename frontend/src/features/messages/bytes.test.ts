import { expect, test } from "vitest";
import type { Message, RecordBytes } from "@/lib/api/types";
import { prepend, streamUrl, TAIL_MAX } from "./api/useTail";
import { base64Lines, bytesOf, hexDump, oneLine, prettyJson, readingsOf } from "./bytes";

const content = (bytes: string, text: string | null = bytes): RecordBytes => ({
  base64: btoa(bytes),
  text,
  size: bytes.length,
  truncated: false,
});

const message = (offset: number): Message => ({
  partition: 0,
  offset: String(offset),
  timestamp_ms: "0",
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
  expect(oneLine(content(""))).toBe("empty");
});

/** Bytes as the API has them: as text too where they are UTF-8. */
const binary = (...bytes: number[]): RecordBytes =>
  content(String.fromCharCode(...bytes), bytes.every((byte) => byte < 128) ? undefined : null);

test("integers of 4 and 8 bytes are read as such, with every digit", () => {
  expect(oneLine(binary(0, 0, 0, 7))).toBe("int32 7: 0x00000007");
  expect(oneLine(binary(255, 255, 255, 255))).toBe("int32 -1: 0xffffffff");
  expect(oneLine(binary(0, 0x20, 0, 0, 0, 0, 0, 1))).toContain("int64 9007199254740993");
  // "1234" is text, although it has four bytes.
  expect(oneLine(content("1234"))).toBe("1234");
});

test("a schema registry's header is named with its schema", () => {
  const avro = binary(0, 0, 0, 0, 17, 2, 0x80);
  expect(oneLine(avro)).toBe("Confluent header, schema 17: 0x00000000110280");
  expect(readingsOf(binary(0, 0, 0, 1, 0x93, 0x66, 0, 0))).toEqual([
    "int64 6767902720",
    "Confluent header, schema 403",
  ]);
  expect(readingsOf(binary(0, 0, 0, 0, 0, 1))).toEqual([]);
});

test("nothing that cannot be seen is drawn raw", () => {
  expect(oneLine(content("a\u0000b"))).toBe("a\\x00b");
  expect(oneLine(content("x", "\u202egnp.exe"))).toBe("\\u202egnp.exe");
});

test("base64 is whole, on lines", () => {
  const lines = base64Lines(content("x".repeat(100))).split("\n");
  expect(lines.map((line) => line.length)).toEqual([76, 60]);
  expect(atob(lines.join(""))).toBe("x".repeat(100));
});

test("a tail shows the newest first and forgets the oldest", () => {
  const shown = prepend([message(1)], [message(2), message(3)]);
  expect(shown.map((m) => m.offset)).toEqual(["3", "2", "1"]);
  const many = Array.from({ length: TAIL_MAX }, (_, offset) => message(offset));
  expect(prepend(many, [message(9)])).toHaveLength(TAIL_MAX);
});

test("a stream's address holds any name and filter, and wakes only when asked", () => {
  const plain = streamUrl("cl_a", "a.b", false, undefined);
  expect(plain).toBe("/api/v1/clusters/cl_a/topics/a.b/messages/stream");
  expect(streamUrl("cl_a", "a/b", true, undefined)).toContain("/a%2Fb/messages/stream?wake=true");
  expect(streamUrl("cl_a", "a", true, "a&b > 1")).toContain("?wake=true&filter=a%26b+%3E+1");
});
