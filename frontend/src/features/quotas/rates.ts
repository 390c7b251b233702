import { formatBytes, formatCount, parseBytes, writeBytes } from "@/lib/format/bytes";

/**
 * Bytes per second of what was typed: `10 MiB`, `2.5GB/s`, `1000000`. Null for nothing typed,
 * undefined for what is no rate.
 */
export function parseRate(text: string): number | null | undefined {
  const typed = text.trim().replace(/\/s$/i, "").trim();
  if (typed === "") return null;
  const bytes = parseBytes(typed);
  return bytes !== undefined && Number(bytes) >= 1 ? Number(bytes) : undefined;
}

/** Writes a rate as the text of a field, in the largest unit without a fraction: `10 MiB`. */
export function writeRate(bytes: number | null): string {
  return bytes === null ? "" : writeBytes(bytes);
}

/** Formats a rate: `10.0 MiB/s`. */
export function formatRate(bytes: number): string {
  return `${formatBytes(bytes)}/s`;
}

/** Formats a rate exactly, in bytes. */
export function exactRate(bytes: number): string {
  return `${formatCount(bytes)} bytes per second`;
}
