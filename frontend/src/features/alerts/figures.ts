import type { Alert, AlertKind } from "@/lib/api/types";
import { formatBytes, formatNumber, parseBytes, writeBytes } from "@/lib/format/bytes";
import { formatDuration, parseDuration } from "@/lib/format/time";
import { parseWhole, type Whole } from "@/lib/format/whole";

type Unit = "records" | "seconds" | "bytes" | "connections";

interface Kind {
  value: AlertKind;
  label: string;
  what: string;
  unit: Unit;
  /** Whether it is the figure of a consumer group: a named one, or the one furthest behind. */
  ofGroups: boolean;
}

/** The figures that an alert can watch. */
export const KINDS: readonly Kind[] = [
  {
    value: "group_lag_seconds",
    label: "Lag of a group, in time",
    what: "How long ago the next record to read was written",
    unit: "seconds",
    ofGroups: true,
  },
  {
    value: "group_lag",
    label: "Lag of a group, in records",
    what: "How many records a group has not read yet",
    unit: "records",
    ofGroups: true,
  },
  {
    value: "storage_bytes",
    label: "Stored bytes",
    what: "What all topics keep",
    unit: "bytes",
    ofGroups: false,
  },
  {
    value: "storage_growth_bytes",
    label: "Growth in 24 hours",
    what: "How much more is stored than a day ago",
    unit: "bytes",
    ofGroups: false,
  },
  {
    value: "connections",
    label: "Connections",
    what: "Clients that are connected at once",
    unit: "connections",
    ofGroups: false,
  },
];

const BY_VALUE = new Map(KINDS.map((kind) => [kind.value, kind]));

/** Returns whether a figure is one of consumer groups. */
export function isOfGroups(kind: AlertKind): boolean {
  return BY_VALUE.get(kind)?.ofGroups ?? false;
}

function unitOf(kind: AlertKind): Unit {
  return BY_VALUE.get(kind)?.unit ?? "records";
}

/** Formats a figure: `1 min 30 s`, `4 096 records`, `1.5 GiB`, `1 connection`. */
export function formatFigure(kind: AlertKind, value: Whole): string {
  const unit = unitOf(kind);
  if (unit === "seconds") return formatDuration(Number(value));
  if (unit === "bytes") return formatBytes(value);
  return formatNumber(value, unit === "records" ? "record" : "connection");
}

/** Writes a figure as the text of a form's field, which `parseFigure` reads again. */
export function writeFigure(kind: AlertKind, value: string): string {
  const unit = unitOf(kind);
  if (unit === "bytes") return writeBytes(value);
  if (unit !== "seconds") return value;
  // `formatDuration` has two units only: 1 d 1 h 1 min is written in seconds.
  const words = formatDuration(Number(value));
  return String(parseDuration(words)) === value ? words : value;
}

/** Parses a typed threshold: `90`, `5 min`, `10 GiB`, `1 000`. Undefined where it is wrong. */
export function parseFigure(kind: AlertKind, text: string): string | undefined {
  const unit = unitOf(kind);
  if (unit === "bytes") return parseBytes(text);
  if (unit === "seconds") return parseDuration(text)?.toString();
  const digits = parseWhole(text);
  return digits?.startsWith("-") ? undefined : digits;
}

/** Returns how a threshold of this kind may be typed. */
export function figureHint(kind: AlertKind): string {
  return {
    seconds: "Such as 90 s, 5 min or 1 h",
    bytes: "Such as 500 MiB or 10 GiB",
    records: "A number of records",
    connections: "A number of connections",
  }[unitOf(kind)];
}

/** Returns when an alert fires: `Lag of checkout above 1 min for 5 min`. */
export function conditionWords(
  alert: Pick<Alert, "kind" | "group" | "for_s"> & { threshold: Whole },
): string {
  const { kind, group, threshold, for_s } = alert;
  const what = isOfGroups(kind)
    ? `Lag of ${group || "any group"}`
    : (BY_VALUE.get(kind)?.label ?? kind);
  const above = `above ${formatFigure(kind, threshold)}`;
  return for_s > 0 ? `${what} ${above} for ${formatDuration(for_s)}` : `${what} ${above}, at once`;
}

/** The choices of how long a figure has to stay beyond its threshold, in seconds. */
const DURATIONS_S = [0, 60, 300, 900, 1_800, 3_600, 6 * 3_600, 24 * 3_600];

/** Returns these durations as choices of a field, with the one that is set at present. */
export function durations(present: number): { value: string; label: string }[] {
  const all = [...new Set([...DURATIONS_S, present])].sort((a, b) => a - b);
  return all.map((s) => ({ value: String(s), label: s === 0 ? "At once" : formatDuration(s) }));
}

/** The state of an alert as the console shows it. */
export type ShownState = "firing" | "pending" | "ok" | "unknown" | "new";

export function shownStateOf(alert: Pick<Alert, "state" | "value" | "evaluated_at">): ShownState {
  if (alert.state !== "ok") return alert.state;
  if (alert.evaluated_at === null) return "new";
  return alert.value === null ? "unknown" : "ok";
}

/** Returns the group or topic of an alert: that for which it fires, and that of the figure. */
export function subjectOf(alert: Pick<Alert, "state" | "subject" | "fired_subject">): string[] {
  const { state, subject, fired_subject } = alert;
  const fires = state === "firing" ? fired_subject : "";
  if (!fires || fires === subject) return subject ? [subject] : [];
  return subject ? [fires, `, now ${subject}`] : [fires];
}

/** Returns the alerts that watch a group: by its name, or as one of all groups. */
export function alertsOfGroup(alerts: readonly Alert[], clusterId: string, group: string): Alert[] {
  return alerts.filter(
    (alert) =>
      alert.cluster_id === clusterId &&
      isOfGroups(alert.kind) &&
      (alert.group === group || alert.group === ""),
  );
}
