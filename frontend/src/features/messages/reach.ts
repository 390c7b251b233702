import type { Start } from "./api/messages";
import { formatCount } from "@/lib/format/bytes";
import { big, compareWhole } from "@/lib/format/whole";

/** The offsets that a partition has: from `begin` to before `end`. */
interface Reached {
  partition: number;
  begin: string;
  end: string;
}

/** So many partitions are named; of more only their number. */
const NAMED = 3;

function listed(parts: readonly string[]): string {
  const more = parts.length - NAMED;
  const named = parts.slice(0, NAMED).join("; ");
  return more > 0 ? `${named}; and ${formatCount(more)} more` : named;
}

/** Returns why nothing is at an offset, in words; undefined where it is not for the offset. */
export function beyondWords(start: Start, reached: readonly Reached[]): string | undefined {
  if (start.from !== "offset" || start.offset === undefined) return undefined;
  const offset = start.offset;
  if (reached.length === 0 || reached.some(({ end }) => compareWhole(offset, end) < 0)) {
    return undefined;
  }
  const ranges = reached.map(({ partition, begin, end }) =>
    compareWhole(begin, end) === 0
      ? `partition ${String(partition)} is empty, and goes on at ${formatCount(end)}`
      : `partition ${String(partition)} has ${formatCount(begin)} to ${formatCount(big(end) - 1n)}`,
  );
  return `Offset ${formatCount(offset)} is not written yet: ${listed(ranges)}.`;
}

/** Returns which partitions begin behind the offset that was asked for, in words. */
export function goneWords(start: Start, reached: readonly Reached[]): string | undefined {
  if (start.from !== "offset" || start.offset === undefined) return undefined;
  const offset = start.offset;
  const gone = reached.filter(({ begin }) => compareWhole(offset, begin) < 0);
  if (gone.length === 0) return undefined;
  const begins = gone.map(
    ({ partition, begin }) => `partition ${String(partition)} begins at ${formatCount(begin)}`,
  );
  return `Offset ${formatCount(offset)} was deleted or has expired: ${listed(begins)}.`;
}
