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

/** A count with its noun: `1 record`, `1 234 records`. The noun's plural ends in s. */
export function formatNumber(value: number, noun: string): string {
  return value === 1 ? `1 ${noun}` : `${formatCount(value)} ${noun}s`;
}

/** Groups digits with thin spaces, as all numbers of the console: `1234567` → `1 234 567`. */
export function formatCount(value: number): string {
  return Math.trunc(value)
    .toString()
    .replace(/\B(?=(\d{3})+(?!\d))/g, "\u202f");
}
