import type { RecordBytes } from "@/lib/api/types";
import { layOutJson } from "./json";

export function bytesOf(content: RecordBytes): Uint8Array {
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

/** Returns a hex dump with offsets and printable ASCII, 16 bytes on each line. */
export function hexDump(bytes: Uint8Array): string {
  const lines: string[] = [];
  for (let at = 0; at < bytes.length; at += WIDTH) {
    const row = [...bytes.subarray(at, at + WIDTH)];
    const hex = row.map((byte) => byte.toString(16).padStart(2, "0")).join(" ");
    const ascii = row.map((b) => (b >= 32 && b < 127 ? String.fromCharCode(b) : ".")).join("");
    lines.push(`${at.toString(16).padStart(6, "0")}  ${hex.padEnd(WIDTH * 3 - 1)}  ${ascii}`);
  }
  return lines.join("\n");
}

const LINE_MAX = 400;

/** Returns bytes as one line for a table: text without line breaks, or the first bytes in hex. */
export function oneLine(content: RecordBytes | null): string {
  if (content === null) return "null";
  if (content.text !== null) {
    return content.text.slice(0, LINE_MAX).replace(/\s+/g, " ");
  }
  const head = [...bytesOf(content).subarray(0, 32)];
  return `0x${head.map((byte) => byte.toString(16).padStart(2, "0")).join("")}`;
}
