/** Instants as text, in a zone that the text names. */
import type { Zone } from "@/lib/zone";
import { big, INT64_MAX, type Whole } from "./whole";

const two = (value: number): string => String(value).padStart(2, "0");

/** A calendar's fields of an instant in a zone, as an instant whose UTC fields they are. */
function fieldsOf(instant: Date, zone: Zone): Date {
  if (zone === "utc") return instant;
  return new Date(instant.getTime() - instant.getTimezoneOffset() * 60_000);
}

/** Names a zone at an instant by its distance from UTC: `UTC`, `UTC+01:00`. */
export function zoneName(instant: Date, zone: Zone): string {
  const minutes = zone === "utc" ? 0 : -instant.getTimezoneOffset();
  if (minutes === 0) return "UTC";
  const length = Math.abs(minutes);
  const sign = minutes < 0 ? "−" : "+";
  return `UTC${sign}${two(Math.floor(length / 60))}:${two(length % 60)}`;
}

/** Formats the day of an instant: `2026-03-01`. */
function formatDay(fields: Date): string {
  const year = fields.getUTCFullYear();
  const digits = String(Math.abs(year)).padStart(4, "0");
  const day = `${two(fields.getUTCMonth() + 1)}-${two(fields.getUTCDate())}`;
  return `${year < 0 ? "−" : ""}${digits}-${day}`;
}

function formatClock(fields: Date): string {
  return `${two(fields.getUTCHours())}:${two(fields.getUTCMinutes())}`;
}

/** Formats an instant to the millisecond: `2026-03-01 14:05:09.120 UTC+01:00`. */
export function formatInstant(instant: Date, zone: Zone): string {
  const fields = fieldsOf(instant, zone);
  const seconds = two(fields.getUTCSeconds());
  const milliseconds = String(fields.getUTCMilliseconds()).padStart(3, "0");
  const clock = `${formatClock(fields)}:${seconds}.${milliseconds}`;
  return `${formatDay(fields)} ${clock} ${zoneName(instant, zone)}`;
}

/** Formats an instant to the minute: `2026-03-01 14:05 UTC+01:00`. */
export function formatMinute(instant: Date, zone: Zone): string {
  const fields = fieldsOf(instant, zone);
  return `${formatDay(fields)} ${formatClock(fields)} ${zoneName(instant, zone)}`;
}

/** The furthest instant from 1970 that a `Date` can hold, in milliseconds. */
const DATE_MS_MAX = 8_640_000_000_000_000n;

/**
 * Returns the instant of Unix milliseconds; null where there is none that a calendar has. Producers
 * may write any 64-bit number as a record's time.
 */
export function instantOf(milliseconds: Whole): Date | null {
  const exact = big(milliseconds);
  if (exact > DATE_MS_MAX || exact < -DATE_MS_MAX) return null;
  return new Date(Number(exact));
}

/** Writes an instant as the text of a `datetime-local` field: `2026-03-01T14:05:09`. */
export function writeField(instant: Date, zone: Zone): string {
  return fieldsOf(instant, zone).toISOString().slice(0, 19);
}

/** Reads the text of a `datetime-local` field as an instant; undefined where it is none. */
export function readField(text: string, zone: Zone): Date | undefined {
  const instant = new Date(zone === "utc" ? `${text}Z` : text);
  return text === "" || Number.isNaN(instant.getTime()) ? undefined : instant;
}

const DAY = String.raw`(\d{4}-\d\d-\d\d)`;
const CLOCK = String.raw`(\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?)`;
const DISTANCE = String.raw`([+\u2212-]\d\d:\d\d)`;

/**
 * Reads a typed or pasted instant: what a page shows (`2026-03-01 14:05:09.120 UTC+01:00`), ISO
 * 8601, or Unix milliseconds. Without a zone it is in `zone`. Undefined where it is none.
 */
export function parseInstant(text: string, zone: Zone): Date | undefined {
  const typed = text.trim();
  if (/^-?\d{5,19}$/.test(typed)) {
    return big(typed) <= INT64_MAX ? (instantOf(typed) ?? undefined) : undefined;
  }
  const shown = new RegExp(`^${DAY}(?:[T ]+${CLOCK})?\\s*(?:(UTC|Z)?${DISTANCE}?)$`, "i");
  const [, day, clock = "00:00", utc, distance] = shown.exec(typed) ?? [];
  if (day === undefined) return undefined;
  const named = distance?.replace("\u2212", "-") ?? (utc || zone === "utc" ? "Z" : "");
  const instant = new Date(`${day}T${clock}${named}`);
  return Number.isNaN(instant.getTime()) ? undefined : instant;
}
