import type { RecordBytes } from "@/lib/api/types";
import { isLegible, legible } from "@/lib/format/legible";
import { layOutJson } from "./json";

export function bytesOf(content: RecordBytes): Uint8Array<ArrayBuffer> {
  const binary = atob(content.base64);
  return Uint8Array.from(binary, (character) => character.charCodeAt(0));
}

/** JSON laid out for reading, each of its tokens as the record has it; null where the bytes are not
 * JSON text. */
export function prettyJson(content: RecordBytes | null): string | null {
  if (content?.text == null || content.truncated) return null;
  return layOutJson(content.text);
}

const WIDTH = 16;

const hexOf = (byte: number): string => byte.toString(16).padStart(2, "0");

/** Returns a hex dump with offsets and printable ASCII, 16 bytes on each line. */
export function hexDump(bytes: Uint8Array): string {
  const lines: string[] = [];
  for (let at = 0; at < bytes.length; at += WIDTH) {
    const row = [...bytes.subarray(at, at + WIDTH)];
    const hex = row.map(hexOf).join(" ");
    const ascii = row.map((b) => (b >= 32 && b < 127 ? String.fromCharCode(b) : ".")).join("");
    lines.push(`${at.toString(16).padStart(6, "0")}  ${hex.padEnd(WIDTH * 3 - 1)}  ${ascii}`);
  }
  return lines.join("\n");
}

/** The first byte of what serializers of a schema registry write, and their header's length. */
const MAGIC = 0;
const HEADER_BYTES = 5;

/**
 * Returns what bytes that are no readable text may be: integers of 4 and 8 bytes, both as Kafka's
 * serializers write them (the highest byte first), and a value behind a schema registry's header.
 * Several may apply: bytes alone do not say which one was meant.
 */
export function readingsOf(content: RecordBytes): string[] {
  if (content.text !== null && isLegible(content.text)) return [];
  const bytes = bytesOf(content);
  const view = new DataView(bytes.buffer);
  const readings: string[] = [];
  if (content.size === 4) readings.push(`int32 ${String(view.getInt32(0))}`);
  if (content.size === 8) readings.push(`int64 ${view.getBigInt64(0).toString()}`);
  if (bytes.length >= HEADER_BYTES && bytes[0] === MAGIC && view.getUint32(1) > 0) {
    readings.push(`Confluent header, schema ${String(view.getUint32(1))}`);
  }
  return readings;
}

const LINE_MAX = 400;
const LINE_BYTES = 32;

/**
 * Returns bytes as one line for a table: text without line breaks, or what the bytes may be and the
 * first of them in hex. Null and no bytes are not the same.
 */
export function oneLine(content: RecordBytes | null): string {
  if (content === null) return "null";
  if (content.size === 0) return "empty";
  const readings = readingsOf(content);
  if (content.text !== null && readings.length === 0) {
    return legible(content.text.slice(0, LINE_MAX).replace(/\s+/g, " "));
  }
  const bytes = bytesOf(content);
  const more = content.size > LINE_BYTES ? "…" : "";
  const hex = `0x${[...bytes.subarray(0, LINE_BYTES)].map(hexOf).join("")}${more}`;
  return readings.length === 0 ? hex : `${readings.join(" or ")}: ${hex}`;
}

/** Returns whether a line of `oneLine` is a word for what is not there. */
export function isAbsent(content: RecordBytes | null): boolean {
  return content === null || content.size === 0;
}

/** Returns the bytes in base64, on lines of 76 characters. */
export function base64Lines(content: RecordBytes): string {
  return content.base64.replace(/.{76}(?=.)/g, "$&\n");
}
