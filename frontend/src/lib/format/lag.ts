import { formatCount } from "./bytes";
import { formatDuration } from "./time";
import { big, type Whole } from "./whole";

export interface Lag {
  lag: string | null;
  lag_seconds: number | null;
}

/** Formats a lag in records; a dash for a partition without a committed offset. */
export function formatLag(records: Whole | null): string {
  return records === null ? "–" : formatCount(records);
}

/** Formats a lag in seconds as a length of time; a dash where it is not known. */
export function formatLagSeconds(seconds: number | null): string {
  return seconds === null ? "–" : formatDuration(seconds);
}

/** Returns the sum of records and the most seconds over partitions; null where nothing is known. */
export function sumLag(partitions: readonly Lag[]): Lag {
  const known = partitions.flatMap((p) => (p.lag === null ? [] : [p.lag]));
  const seconds = partitions.flatMap((p) => (p.lag_seconds === null ? [] : [p.lag_seconds]));
  return {
    lag: known.length > 0 ? known.reduce((sum, lag) => sum + big(lag), 0n).toString() : null,
    lag_seconds: seconds.length > 0 ? Math.max(...seconds) : null,
  };
}
