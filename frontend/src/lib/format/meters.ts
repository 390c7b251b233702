import { formatBytes, formatCount } from "./bytes";
import { big, groupDigits, type Whole } from "./whole";
import { formatDuration } from "./time";

/** The meters, by their names in the API. The documents on usage have their exact definitions. */
export const METERS = [
  "ingress_bytes",
  "egress_bytes",
  "storage_byte_minutes",
  "partition_minutes",
  "broker_seconds",
] as const;

export type Meter = (typeof METERS)[number];

interface MeterWords {
  /** The name in a table or of a tile. */
  name: string;
  /** The explanation on hover. */
  what: string;
  /** The singular of the unit. */
  unit: string;
}

const WORDS: Record<Meter, MeterWords> = {
  ingress_bytes: {
    name: "In",
    what: "Bytes of record batches as stored: compressed, headers included",
    unit: "byte",
  },
  egress_bytes: {
    name: "Out",
    what: "Bytes of record batches handed to consumers",
    unit: "byte",
  },
  storage_byte_minutes: {
    name: "Stored",
    what: "Bytes that retention keeps, counted each minute; copies are not counted",
    unit: "byte-minute",
  },
  partition_minutes: {
    name: "Partitions",
    what: "Partitions that exist, counted each minute",
    unit: "partition-minute",
  },
  broker_seconds: {
    name: "Broker time",
    what: "How long brokers ran. It is shown, and never billed",
    unit: "second",
  },
};

/** Returns whether a name is a known meter. An unknown meter is shown by its name in the API. */
export function isMeter(name: string): name is Meter {
  return (METERS as readonly string[]).includes(name);
}

/** Returns whether what a meter counts is billed. Its usage by the service itself still is not. */
export function isBillable(meter: string): boolean {
  return meter !== "broker_seconds";
}

export function meterName(meter: string): string {
  return isMeter(meter) ? WORDS[meter].name : meter.replaceAll("_", " ");
}

export function meterMeaning(meter: string): string {
  return isMeter(meter) ? WORDS[meter].what : "";
}

/** Formats a number with up to two decimals, without zeros at the end: `2.50` → `2.5`. */
export function formatDecimal(value: number): string {
  if (value !== 0 && Math.abs(value) < 0.01) return value < 0 ? "> −0.01" : "< 0.01";
  const [whole = "0", fraction = ""] = value.toFixed(2).split(".");
  const kept = fraction.replace(/0+$/, "");
  return `${formatCount(Number(whole))}${kept ? `.${kept}` : ""}`;
}

/**
 * A meter's value on an axis or at a place of a chart: bytes of a window, bytes or partitions that
 * were there on average, seconds of brokers.
 */
export function formatLevel(meter: string, value: number): string {
  if (meter === "partition_minutes") return formatDecimal(value);
  if (meter === "broker_seconds") return formatDuration(value);
  return isMeter(meter) ? formatBytes(value) : formatDecimal(value);
}

/** Returns whether a meter counts something over time, so that a window shows its mean. */
export function isTimed(meter: string): boolean {
  return meter === "storage_byte_minutes" || meter === "partition_minutes";
}

/**
 * Returns the level of a quantity in a window of `minutes`: the mean, where the meter counts over
 * time.
 */
export function levelOf(meter: string, quantity: Whole, minutes: number): number {
  return isTimed(meter) && minutes > 0 ? Number(quantity) / minutes : Number(quantity);
}

/** Formats a quantity of a window of `minutes`. */
export function formatQuantity(meter: string, quantity: Whole, minutes: number): string {
  return formatLevel(meter, levelOf(meter, quantity, minutes));
}

/** Formats a quantity to its last digit. */
export function exactQuantity(meter: string, quantity: Whole): string {
  const unit = isMeter(meter) ? WORDS[meter].unit : "unit";
  return `${groupDigits(quantity, "\u202f")} ${unit}${big(quantity) === 1n ? "" : "s"}`;
}

const GIB = 1024 ** 3;

/** Returns how many base units (bytes, byte-minutes, partition-minutes) a priced unit has. */
export function unitSize(unit: string, monthMinutes: number): number {
  if (unit === "GiB") return GIB;
  if (unit === "GiB-month") return GIB * monthMinutes;
  if (unit === "partition-hour") return 60;
  return unit === "partition-month" ? monthMinutes : 1;
}

/** Returns a quantity in a priced unit. `monthMinutes`: the length of the month. */
export function inUnits(quantity: Whole, unit: string, monthMinutes: number): number {
  return Number(quantity) / unitSize(unit, monthMinutes);
}

/** Formats a quantity of a month in its priced unit; bytes in a unit of their size. */
export function formatPriced(quantity: Whole, unit: string, monthMinutes: number): string {
  if (unit === "GiB") return formatBytes(quantity);
  return formatUnits(inUnits(quantity, unit, monthMinutes), unit);
}

/** Formats a count of priced units: `2.5 GiB-months`. */
export function formatUnits(count: number, unit: string): string {
  const plural = count === 1 || unit === "GiB" || unit === "" ? "" : "s";
  return `${formatDecimal(count)} ${unit}${plural}`.trim();
}
