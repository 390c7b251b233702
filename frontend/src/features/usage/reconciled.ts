import type { Tone } from "@/components/Note";
import type { ReconciledDay } from "@/lib/api/types";
import { formatCount } from "@/lib/format/bytes";
import { big } from "@/lib/format/whole";

export type Agreement = ReconciledDay["agreement"];

/** How a comparison of usage with the log ended, in words and with its tone. */
export const AGREEMENTS: Record<Agreement, { word: string; tone: Tone }> = {
  equal: { word: "Equal to the byte", tone: "running" },
  partly_known: { word: "Equal where known", tone: "quiet" },
  different: { word: "Different", tone: "failed" },
};

/** What is said of several days: the worst of them, and how many there are. */
export interface Summary {
  agreement: Agreement;
  days: number;
}

const WORST_FIRST: readonly Agreement[] = ["different", "partly_known", "equal"];

/** The worst agreement among days; undefined without any. */
export function summaryOf(days: readonly ReconciledDay[]): Summary | undefined {
  const agreement = WORST_FIRST.find((worst) => days.some((day) => day.agreement === worst));
  if (agreement === undefined) return undefined;
  return { agreement, days: new Set(days.map(({ day }) => day)).size };
}

/** By how many bytes usage is off the log, with its sign: `0`, `+12`, `−3`. */
export function difference(day: ReconciledDay): string {
  const bytes = big(day.metered_bytes) - big(day.logged_bytes);
  if (bytes === 0n) return "0";
  return `${bytes > 0n ? "+" : "−"}${formatCount(bytes > 0n ? bytes : -bytes)}`;
}
