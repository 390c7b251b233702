import { formatBytes } from "@/lib/format/bytes";
import { formatDuration } from "@/lib/format/time";

/** Returns a duration or size in larger units; "" where that adds nothing to the value. */
export function readableConfig(name: string, value: string | null): string {
  if (value === null || !/^-?\d+$/.test(value)) return "";
  const amount = Number(value);
  if (amount === -1) return name.startsWith("retention.") ? "no limit" : "";
  if (name.endsWith(".ms")) {
    return amount > 3_650 * 86_400_000 ? "practically no limit" : formatDuration(amount / 1000);
  }
  return name.endsWith(".bytes") ? formatBytes(amount) : "";
}

/** The topic configs for which Kafka documents a closed set of values. */
const CHOICES: Record<string, readonly string[]> = {
  "cleanup.policy": ["delete", "compact", "compact,delete"],
  "compression.type": ["producer", "uncompressed", "gzip", "snappy", "lz4", "zstd"],
  "message.timestamp.type": ["CreateTime", "LogAppendTime"],
};

/** Returns the values that a config can have; undefined where they are no closed set. */
export function configChoices(
  name: string,
  fallback: string | null,
): readonly string[] | undefined {
  if (fallback === "true" || fallback === "false") return ["true", "false"];
  return CHOICES[name];
}

/** Returns what is wrong with a value; null where nothing is. The service checks it again. */
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

/** Returns which of Kafka's rules a topic's name breaks; null where it breaks none. */
export function topicNameComplaint(name: string): string | null {
  if (name === "") return "Name the topic";
  if (name.length > 249) return "At most 249 characters";
  if (name === "." || name === "..") return "Not . or ..";
  return /^[a-zA-Z0-9._-]+$/.test(name) ? null : "Letters, digits, dots, dashes and underscores";
}

/** Returns whether the topic itself sets a config: Kafka calls that source DYNAMIC_TOPIC_CONFIG. */
export function isOwn(source: string): boolean {
  return source.toUpperCase().includes("TOPIC");
}
