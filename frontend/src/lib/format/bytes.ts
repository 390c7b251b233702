import { big, groupDigits, type Whole } from "./whole";

const UNITS = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];

/** Formats a count of bytes with binary units: `1536` → `1.5 KiB`. */
export function formatBytes(count: Whole): string {
  const bytes = Number(count);
  let value = Math.abs(bytes);
  let unit = 0;
  while (value >= 1023.95 && unit < UNITS.length - 1) {
    value /= 1024;
    unit += 1;
  }
  const digits = unit === 0 || value >= 99.95 ? 0 : 1;
  return `${bytes < 0 ? "-" : ""}${value.toFixed(digits)} ${UNITS[unit] ?? ""}`;
}

/** Formats a count with its noun: `1 record`, `1 234 records`. The noun's plural ends in s. */
export function formatNumber(value: Whole, noun: string): string {
  return String(value) === "1" ? `1 ${noun}` : `${formatCount(value)} ${noun}s`;
}

/** Formats a count with thin spaces between groups of digits: `1234567` → `1 234 567`. */
export function formatCount(value: Whole): string {
  return groupDigits(value, "\u202f");
}

const SIZES: Record<string, number> = {
  "": 1,
  b: 1,
  kb: 1e3,
  mb: 1e6,
  gb: 1e9,
  tb: 1e12,
  kib: 1024,
  mib: 1024 ** 2,
  gib: 1024 ** 3,
  tib: 1024 ** 4,
};

/** Parses a typed size as bytes: `10 MiB`, `2.5GB`, `1000000`. Undefined where it is wrong. */
export function parseBytes(text: string): string | undefined {
  // Numbers are copied from pages, which have narrow spaces between groups of digits.
  const typed = text
    .trim()
    .toLowerCase()
    .replace(/(?<=\d)[\s\u202f\u00a0](?=\d{3})/g, "");
  const [, amount, unit] = /^(\d+(?:[.,]\d+)?)\s*([a-z]*)$/.exec(typed) ?? [];
  const size = unit === undefined ? undefined : SIZES[unit];
  if (amount === undefined || size === undefined) return undefined;
  // Without a fraction no digit is lost, however many there are.
  if (/^\d+$/.test(amount)) return (BigInt(amount) * BigInt(size)).toString();
  return String(Math.round(Number(amount.replace(",", ".")) * size));
}

/** Writes bytes as the text of a field, in the largest unit without a fraction: `10 MiB`. */
export function writeBytes(count: Whole): string {
  if (typeof count === "number" && !Number.isSafeInteger(count)) return String(count);
  const bytes = big(count);
  for (const unit of ["TiB", "GiB", "MiB", "KiB"]) {
    const size = BigInt(SIZES[unit.toLowerCase()] ?? 1);
    if (bytes < size || (bytes * 10n) % size !== 0n) continue;
    const tenths = ((bytes * 10n) / size).toString();
    return `${tenths.slice(0, -1)}.${tenths.slice(-1)} ${unit}`.replace(".0 ", " ");
  }
  return bytes.toString();
}
