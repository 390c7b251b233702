/** Usage and money are counted in UTC, so their times are shown in UTC. */

const MONTHS = [
  "January",
  "February",
  "March",
  "April",
  "May",
  "June",
  "July",
  "August",
  "September",
  "October",
  "November",
  "December",
];

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;

const two = (value: number): string => String(value).padStart(2, "0");

const short = (month: number): string => (MONTHS[month] ?? "").slice(0, 3);

/** Formats the time of an instant: `14:05`. */
export function utcTime(at: Date): string {
  return `${two(at.getUTCHours())}:${two(at.getUTCMinutes())}`;
}

/** Formats the day of an instant: `21 Nov 2026`. */
export function utcDay(at: Date): string {
  return `${utcDayOfMonth(at)} ${String(at.getUTCFullYear())}`;
}

/** Formats the day of an instant without the year: `21 Nov`. */
export function utcDayOfMonth(at: Date): string {
  return `${String(at.getUTCDate())} ${short(at.getUTCMonth())}`;
}

/** Formats a month: `2026-11` → `November 2026`. */
export function monthName(month: string): string {
  const [year = "", number = ""] = month.split("-");
  return `${MONTHS[Number(number) - 1] ?? number} ${year}`;
}

/** Returns the month of an instant as the API names it: `2026-11`. */
export function monthOf(at: Date): string {
  return `${String(at.getUTCFullYear())}-${two(at.getUTCMonth() + 1)}`;
}

/** Returns the first instant of a month like `2026-11`, or of the one `after` months later. */
export function monthStart(month: string, after = 0): Date {
  const [year, number] = month.split("-").map(Number);
  return new Date(Date.UTC(year ?? Number.NaN, (number ?? Number.NaN) - 1 + after, 1));
}

/** Returns the month before: `2026-01` → `2025-12`. */
export function monthBefore(month: string): string {
  return monthOf(monthStart(month, -1));
}

/** Returns the span of a month as days in an address: `2026-11-01` to `2026-12-01`. */
export function monthSpan(month: string): { from: string; to: string } {
  const day = (at: Date): string => at.toISOString().slice(0, 10);
  return { from: day(monthStart(month)), to: day(monthStart(month, 1)) };
}

/** Returns how many minutes a month has. */
export function minutesOfMonth(month: string): number {
  return (monthStart(month, 1).getTime() - monthStart(month).getTime()) / MINUTE_MS;
}

/** Formats a window as short as possible: `21 Nov, 14:05`, `21 Nov, 14:00–15:00`, `Nov 2026`. */
export function formatWindow(start: Date, end: Date): string {
  const length = end.getTime() - start.getTime();
  if (length <= MINUTE_MS) return `${utcDayOfMonth(start)}, ${utcTime(start)}`;
  if (length < DAY_MS) return `${utcDayOfMonth(start)}, ${utcTime(start)}–${utcTime(end)}`;
  if (length === DAY_MS) return utcDay(start);
  const month = monthOf(start);
  const whole =
    start.getTime() === monthStart(month).getTime() &&
    end.getTime() === monthStart(month, 1).getTime();
  if (whole) return `${short(start.getUTCMonth())} ${String(start.getUTCFullYear())}`;
  return `${utcDay(start)} – ${utcDay(new Date(end.getTime() - 1))}`;
}

/** Formats a tick of a time axis whose ticks are `stepS` seconds apart. */
export function timeTick(atS: number, stepS: number): string {
  const at = new Date(atS * 1000);
  if (stepS >= 28 * 86_400) return `${short(at.getUTCMonth())} ${String(at.getUTCFullYear())}`;
  if (stepS >= 86_400 || atS % 86_400 === 0) return utcDayOfMonth(at);
  return utcTime(at);
}
