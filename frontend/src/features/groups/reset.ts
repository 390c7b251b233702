import type { PlannedOffset } from "@/lib/api/types";
import type { ResetBody } from "@/lib/api/schema";

export type ResetKind = "earliest" | "latest" | "timestamp" | "offset" | "shift";

export const RESET_KINDS: { value: ResetKind; label: string }[] = [
  { value: "earliest", label: "The oldest record" },
  { value: "latest", label: "The end: skip what is there" },
  { value: "timestamp", label: "The first record from a time on" },
  { value: "offset", label: "An offset" },
  { value: "shift", label: "Forward or back by a number of records" },
];

export interface ResetChoice {
  kind: ResetKind;
  /** A local date and time, an offset or a number of records, as typed. */
  value: string;
  /** None for all topics that the group has committed in. */
  topics: string[];
}

/** What is wrong with a choice; null when it can be planned. */
export function resetComplaint({ kind, value }: ResetChoice): string | null {
  if (kind === "earliest" || kind === "latest") return null;
  if (kind === "timestamp") {
    return Number.isNaN(Date.parse(value)) ? "Enter a date and a time" : null;
  }
  const number = /^-?\d+$/.test(value) ? Number(value) : Number.NaN;
  if (!Number.isSafeInteger(number)) return "Enter a whole number";
  if (kind === "offset" && number < 0) return "Offsets begin at 0";
  return kind === "shift" && number === 0 ? "A shift by 0 changes nothing" : null;
}

/** The request for a choice without complaint. Instants are sent as Unix milliseconds. */
export function resetBody(choice: ResetChoice, dryRun: boolean): ResetBody {
  const { kind, value, topics } = choice;
  const body: ResetBody = { to: kind, dry_run: dryRun };
  if (kind === "timestamp") body.value = Date.parse(value);
  else if (kind === "offset" || kind === "shift") body.value = Number(value);
  if (topics.length > 0) body.topics = topics;
  return body;
}

/** By how many records a partition moves; null where nothing was committed before. */
export function moveOf(planned: PlannedOffset): number | null {
  return planned.current === null ? null : planned.target - planned.current;
}
