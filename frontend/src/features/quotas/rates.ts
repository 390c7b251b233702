import { formatBytes, formatCount } from "@/lib/format/bytes";

const SIZES: Record<string, number> = {
  "": 1,
  b: 1,
  kb: 1e3,
  mb: 1e6,
  gb: 1e9,
  kib: 1024,
  mib: 1024 ** 2,
  gib: 1024 ** 3,
};

/**
 * Bytes per second of what was typed: `10 MiB`, `2.5GB/s`, `1000000`. Null for nothing typed,
 * undefined for what is no rate.
 */
export function parseRate(text: string): number | null | undefined {
  const typed = text.trim().toLowerCase().replace(/\/s$/, "").trim();
  if (typed === "") return null;
  const [, amount, unit] = /^(\d+(?:[.,]\d+)?)\s*([a-z]*)$/.exec(typed) ?? [];
  const size = unit === undefined ? undefined : SIZES[unit];
  if (amount === undefined || size === undefined) return undefined;
  const bytes = Math.round(Number(amount.replace(",", ".")) * size);
  return bytes >= 1 ? bytes : undefined;
}

/** A rate for a field: in the largest unit that says it exactly, `10 MiB`. */
export function writeRate(bytes: number | null): string {
  if (bytes === null) return "";
  for (const [unit, size] of [
    ["GiB", 1024 ** 3],
    ["MiB", 1024 ** 2],
    ["KiB", 1024],
  ] as const) {
    if (bytes >= size && (bytes * 10) % size === 0) return `${String(bytes / size)} ${unit}`;
  }
  return String(bytes);
}

/** A rate for reading: `10.0 MiB/s`. */
export function formatRate(bytes: number): string {
  return `${formatBytes(bytes)}/s`;
}

/** A rate to the last byte. */
export function exactRate(bytes: number): string {
  return `${formatCount(bytes)} bytes per second`;
}
