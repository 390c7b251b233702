import { formatBytes } from "@/lib/format/bytes";
import { formatDuration } from "@/lib/format/time";

/** A duration or a size as people say it; "" where that says nothing more than the value. */
export function readableConfig(name: string, value: string | null): string {
  if (value === null || !/^-?\d+$/.test(value)) return "";
  const amount = Number(value);
  if (amount === -1) return name.startsWith("retention.") ? "no limit" : "";
  if (name.endsWith(".ms")) {
    return amount > 3_650 * 86_400_000 ? "practically no limit" : formatDuration(amount / 1000);
  }
  return name.endsWith(".bytes") ? formatBytes(amount) : "";
}

/** The closed sets of values that Kafka documents for topic configs. */
const CHOICES: Record<string, readonly string[]> = {
  "cleanup.policy": ["delete", "compact", "compact,delete"],
  "compression.type": ["producer", "uncompressed", "gzip", "snappy", "lz4", "zstd"],
  "message.timestamp.type": ["CreateTime", "LogAppendTime"],
};

/** The values that a config can have, where they are a closed set. */
export function configChoices(
  name: string,
  fallback: string | null,
): readonly string[] | undefined {
  if (fallback === "true" || fallback === "false") return ["true", "false"];
  return CHOICES[name];
}

/** Says what is wrong with a value before the service does; null when nothing is. */
export function configComplaint(
  name: string,
  value: string,
  fallback: string | null,
): string | null {
  const choices = configChoices(name, fallback);
  if (choices) return choices.includes(value) ? null : `One of ${choices.join(", ")}`;
  const numeric = fallback !== null && /^-?\d+(\.\d+)?$/.test(fallback);
  if (!numeric) return value.trim() === "" ? "Enter a value" : null;
  const fraction = name.endsWith(".ratio");
  if (!(fraction ? /^\d+(\.\d+)?$/ : /^-?\d+$/).test(value)) {
    return fraction ? "A number from 0 to 1" : "A whole number";
  }
  if (fraction && Number(value) > 1) return "A number from 0 to 1";
  if (Number(value) < -1) return "At least -1";
  return null;
}

/** Kafka's rule for topic names, in words; null when the name is fine. */
export function topicNameComplaint(name: string): string | null {
  if (name === "") return "Name the topic";
  if (name.length > 249) return "At most 249 characters";
  if (name === "." || name === "..") return "Not . or ..";
  return /^[a-zA-Z0-9._-]+$/.test(name) ? null : "Letters, digits, dots, dashes and underscores";
}

/** Tells whether the topic itself sets a config (Kafka's name for this source is long). */
export function isOwn(source: string): boolean {
  return source.toUpperCase().includes("TOPIC");
}
