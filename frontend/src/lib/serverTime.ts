/**
 * The service's clock. A person's machine may be minutes off, and all times that the console shows
 * come from the service: against the machine's own clock what was just written would lie in the
 * future.
 */

/** A `Date` header has whole seconds, and an answer is on its way for a while. */
const EXACT_MS = 2_000;

let aheadMs = 0;

/** Notes the time at which the service made an answer: its `Date` header. */
export function noteServerTime(header: string | null): void {
  const answered = Date.parse(header ?? "");
  if (Number.isNaN(answered)) return;
  const ahead = answered - Date.now();
  // Both clocks agree as far as such a header can say.
  if (ahead > -EXACT_MS && ahead < EXACT_MS) aheadMs = 0;
  else if (Math.abs(ahead - aheadMs) > EXACT_MS) aheadMs = ahead;
}

/** Returns the present time by the service's clock. */
export function serverTime(): Date {
  return new Date(Date.now() + aheadMs);
}
