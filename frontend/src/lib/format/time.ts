const STEPS: [number, string][] = [
  [86_400, "d"],
  [3_600, "h"],
  [60, "min"],
  [1, "s"],
];

/** Formats a length of time in seconds by its two largest units: `3700` → `1 h 1 min`. */
export function formatDuration(seconds: number): string {
  if (seconds < 0) return `-${formatDuration(-seconds)}`;
  if (seconds > 0 && seconds < 1) return `${String(Math.round(seconds * 1000))} ms`;
  const parts: string[] = [];
  let rest = Math.round(seconds);
  for (const [size, unit] of STEPS) {
    const count = Math.floor(rest / size);
    rest -= count * size;
    if (count > 0) parts.push(`${String(count)} ${unit}`);
    else if (parts.length > 0) break;
    if (parts.length === 2) break;
  }
  return parts.length > 0 ? parts.join(" ") : "0 s";
}

const LENGTHS: Record<string, number> = { "": 1, s: 1, m: 60, min: 60, h: 3_600, d: 86_400 };

/**
 * Parses a typed length of time as seconds: `90`, `5 min`, `1 h 30 min`. Undefined where it is
 * wrong.
 */
export function parseDuration(text: string): number | undefined {
  const typed = text.trim().toLowerCase();
  if (!/^\d+\s*[a-z]*(\s+\d+\s*[a-z]+)*$/.test(typed)) return undefined;
  let seconds = 0;
  for (const [, count, unit] of typed.matchAll(/(\d+)\s*([a-z]*)/g)) {
    const length = LENGTHS[unit ?? ""];
    if (length === undefined) return undefined;
    seconds += Number(count) * length;
  }
  return seconds;
}

/** What is further away than this is shown by its date, not by a distance. */
const FAR_S = 86_400;

/**
 * A clock that goes ahead of this browser's by no more than this makes no future. Records and
 * states that the service reports just now would else be "in 2 s".
 */
const AHEAD_S = 5;

/**
 * Formats how long ago, or how far ahead, an instant is: `12 s ago`, `in 3 min`. Null where it is
 * a day away or more: then only its date says when.
 */
export function formatRelative(instant: Date, now: Date): string | null {
  const seconds = (now.getTime() - instant.getTime()) / 1000;
  if (Math.abs(seconds) >= FAR_S) return null;
  if (seconds < 1 && seconds > -AHEAD_S) return "now";
  const coarse = coarsen(Math.abs(seconds));
  return seconds > 0 ? `${coarse} ago` : `in ${coarse}`;
}

/** Formats how long ago an instant was, without "ago": `12 min`. A future one gives `1 s`. */
export function formatAge(instant: Date, now: Date): string {
  return coarsen((now.getTime() - instant.getTime()) / 1000);
}

function coarsen(seconds: number): string {
  for (const [size, unit] of STEPS) {
    if (seconds >= size) return `${String(Math.floor(seconds / size))} ${unit}`;
  }
  return "1 s";
}
