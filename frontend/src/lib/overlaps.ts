/** The choices of how long the old secret works beside the new one, in seconds. */
export const OVERLAPS: { value: string; label: string }[] = [
  { value: "0", label: "Not at all: the old one ends now" },
  { value: "3600", label: "1 hour" },
  { value: "86400", label: "1 day" },
  { value: "604800", label: "7 days" },
  { value: "2592000", label: "30 days" },
];

/** The choices of when something new ends by itself, in days from now. */
export const LIVES: { value: string; label: string }[] = [
  { value: "", label: "Never" },
  { value: "7", label: "In 7 days" },
  { value: "30", label: "In 30 days" },
  { value: "90", label: "In 90 days" },
  { value: "365", label: "In a year" },
];

/** Returns the instant that a choice of `LIVES` means; null for never. */
export function expiresAt(days: string, now: Date): string | null {
  if (days === "") return null;
  return new Date(now.getTime() + Number(days) * 86_400_000).toISOString();
}
