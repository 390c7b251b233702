const UNITS = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];

/** Formats a count of bytes with binary units: `1536` → `1.5 KiB`. */
export function formatBytes(bytes: number): string {
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
export function formatNumber(value: number, noun: string): string {
  return value === 1 ? `1 ${noun}` : `${formatCount(value)} ${noun}s`;
}

/** Formats a count with thin spaces between groups of digits: `1234567` → `1 234 567`. */
export function formatCount(value: number): string {
  return Math.trunc(value)
    .toString()
    .replace(/\B(?=(\d{3})+(?!\d))/g, "\u202f");
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
export function parseBytes(text: string): number | undefined {
  const [, amount, unit] = /^(\d+(?:[.,]\d+)?)\s*([a-z]*)$/.exec(text.trim().toLowerCase()) ?? [];
  const size = unit === undefined ? undefined : SIZES[unit];
  if (amount === undefined || size === undefined) return undefined;
  return Math.round(Number(amount.replace(",", ".")) * size);
}

/** Writes bytes as the text of a field, in the largest unit without a fraction: `10 MiB`. */
export function writeBytes(bytes: number): string {
  for (const unit of ["TiB", "GiB", "MiB", "KiB"]) {
    const size = SIZES[unit.toLowerCase()] ?? 1;
    if (bytes >= size && (bytes * 10) % size === 0) return `${String(bytes / size)} ${unit}`;
  }
  return String(bytes);
}
