/** Time ranges and their windows: a short range by the minute, a year by the month. */

export type Granularity = "minute" | "hour" | "day" | "month";

export type RangeName = "1h" | "3h" | "24h" | "7d" | "30d" | "90d" | "12mo";

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;

export const RANGES: { value: RangeName; label: string; words: string }[] = [
  { value: "1h", label: "1 h", words: "Last hour, by the minute" },
  { value: "3h", label: "3 h", words: "Last 3 hours, by the minute" },
  { value: "24h", label: "24 h", words: "Last 24 hours, by the hour" },
  { value: "7d", label: "7 d", words: "Last 7 days, by the hour" },
  { value: "30d", label: "30 d", words: "Last 30 days, by the day" },
  { value: "90d", label: "90 d", words: "Last 90 days, by the day" },
  { value: "12mo", label: "12 mo", words: "Last 12 months, by the month" },
];

export const DEFAULT_RANGE: RangeName = "24h";

const LENGTH_MS: Record<Exclude<RangeName, "12mo">, number> = {
  "1h": HOUR_MS,
  "3h": 3 * HOUR_MS,
  "24h": DAY_MS,
  "7d": 7 * DAY_MS,
  "30d": 30 * DAY_MS,
  "90d": 90 * DAY_MS,
};

/** The range in the address: one that ends now, or two instants. */
export interface RangeChoice {
  range?: RangeName;
  from?: string;
  to?: string;
}

/** A range of whole windows. `from` and `to` are boundaries of windows, in UTC. */
export interface Range {
  from: Date;
  to: Date;
  granularity: Granularity;
}

/** Returns the finest granularity with which a chart has at most a few hundred windows. */
export function granularityFor(lengthMs: number): Granularity {
  if (lengthMs <= 3 * HOUR_MS) return "minute";
  if (lengthMs <= 7 * DAY_MS) return "hour";
  return lengthMs <= 93 * DAY_MS ? "day" : "month";
}

/** Returns the start of the window that an instant is in. */
export function windowStart(at: Date, granularity: Granularity): Date {
  if (granularity === "month") return new Date(Date.UTC(at.getUTCFullYear(), at.getUTCMonth(), 1));
  const length = { minute: MINUTE_MS, hour: HOUR_MS, day: DAY_MS }[granularity];
  return new Date(Math.floor(at.getTime() / length) * length);
}

/** Returns the start of the window after the one that an instant is in. */
export function nextWindow(at: Date, granularity: Granularity): Date {
  const start = windowStart(at, granularity);
  if (granularity === "month") {
    return new Date(Date.UTC(start.getUTCFullYear(), start.getUTCMonth() + 1, 1));
  }
  return new Date(start.getTime() + { minute: MINUTE_MS, hour: HOUR_MS, day: DAY_MS }[granularity]);
}

/** Returns the two instants of an address; null unless there are two in order. */
function chosen({ from, to }: RangeChoice): [Date, Date] | null {
  if (!from || !to) return null;
  const [start, end] = [new Date(from), new Date(to)];
  return start.getTime() < end.getTime() ? [start, end] : null;
}

/** Returns the range to show. Its last window is the present one, which still grows. */
export function resolveRange(choice: RangeChoice, now: Date): Range {
  const instants = chosen(choice);
  if (instants) {
    const [from, to] = instants;
    const granularity = granularityFor(to.getTime() - from.getTime());
    const last = new Date(to.getTime() - 1);
    return {
      from: windowStart(from, granularity),
      to: nextWindow(last, granularity),
      granularity,
    };
  }
  const name = choice.range ?? DEFAULT_RANGE;
  if (name === "12mo") {
    const from = new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth() - 11, 1));
    return { from, to: nextWindow(now, "month"), granularity: "month" };
  }
  const granularity = granularityFor(LENGTH_MS[name]);
  const to = nextWindow(now, granularity);
  return { from: new Date(to.getTime() - LENGTH_MS[name]), to, granularity };
}

/** Returns the starts of all windows of a range that have begun, in ms. */
export function windowsOf({ from, to, granularity }: Range, now: Date): number[] {
  const starts: number[] = [];
  const end = Math.min(to.getTime(), now.getTime() + 1);
  for (let at = from; at.getTime() < end; at = nextWindow(at, granularity)) {
    starts.push(at.getTime());
  }
  return starts;
}

/** Returns the length in minutes of the window that begins at an instant. */
export function windowMinutes(start: Date, granularity: Granularity): number {
  return (nextWindow(start, granularity).getTime() - start.getTime()) / MINUTE_MS;
}
