/**
 * Whole numbers of any size. The API writes those that no double holds (offsets, quantities) as
 * text, and a `Number` would round them from 2^53 on.
 */

/** A whole number as the API or a page has it. Text has digits and at most a sign. */
export type Whole = number | string | bigint;

/** Returns a whole number exactly. A fraction is cut off; what is no number gives 0. */
export function big(value: Whole): bigint {
  if (typeof value === "bigint") return value;
  if (typeof value === "number") return Number.isFinite(value) ? BigInt(Math.trunc(value)) : 0n;
  return /^[-+]?\d+$/.test(value) ? BigInt(value.replace(/^\+/, "")) : 0n;
}

/** Orders two whole numbers, for `sort`. */
export function compareWhole(one: Whole, other: Whole): number {
  const [a, b] = [big(one), big(other)];
  return a < b ? -1 : a > b ? 1 : 0;
}

/** Writes a whole number with groups of three digits: `1234567`, `,` → `1,234,567`. */
export function groupDigits(value: Whole, separator: string): string {
  return big(value)
    .toString()
    .replace(/\B(?=(\d{3})+(?!\d))/g, separator);
}

/** What stands between groups of digits: any space, also the narrow one of this console's pages. */
const BETWEEN = /[\s\u00a0\u2007-\u200b\u202f\u205f_']/g;
const GROUPED = /^[-+\u2212]?\d{1,3}([,.]\d{3})+$/;

/**
 * Returns the digits of a typed or pasted whole number: `1 234 567`, `1,234,567` and `1'234'567`
 * are `1234567`. Undefined where it is none.
 */
export function parseWhole(text: string): string | undefined {
  const bare = text.trim().replace(BETWEEN, "").replace("\u2212", "-");
  const digits = GROUPED.test(bare) ? bare.replace(/[,.]/g, "") : bare;
  if (!/^[-+]?\d+$/.test(digits)) return undefined;
  return BigInt(digits.replace(/^\+/, "")).toString();
}

/** The largest number that Kafka's offsets and times can have. */
export const INT64_MAX = 2n ** 63n - 1n;
