import type { Budget, BudgetAction, BudgetEvent } from "@/lib/api/types";
import { formatMoney } from "@/lib/format/money";

export const ACTIONS: { value: BudgetAction; label: string; description: string }[] = [
  {
    value: "notify",
    label: "Send mail",
    description: "Owners, admins and billing get a mail at each threshold. Nothing is stopped.",
  },
  {
    value: "suspend",
    label: "Send mail, and suspend produce at the amount",
    description: "At 100 % producers of all clusters are refused, so that nothing more is spent.",
  },
];

/** `[50, 80, 100]` → `50, 80 and 100 %`. */
export function thresholdWords(thresholds: readonly number[]): string {
  const sorted = [...thresholds].sort((a, b) => a - b).map(String);
  const last = sorted.pop();
  if (last === undefined) return "never";
  return sorted.length > 0 ? `${sorted.join(", ")} and ${last} %` : `${last} %`;
}

/** Returns the spent part of a budget in whole percent. It is 0 only where nothing is spent. */
export function spentPercent({ spent_minor, amount_minor }: Budget): number {
  if (amount_minor <= 0) return 100;
  const percent = Math.floor((100 * spent_minor) / amount_minor);
  return spent_minor > 0 ? Math.max(1, percent) : percent;
}

/** Returns sentences on what happens when a suspending budget is reached. */
export function consequences(amountMinor: number, currency: string): string[] {
  const amount = formatMoney(amountMinor, currency);
  return [
    `When this month's cost reaches ${amount}, producers of every cluster are refused with ` +
      "POLICY_VIOLATION and this budget's name.",
    "Consumers go on reading, offsets are committed, and no record is lost.",
    "Usage is evaluated twice a minute. What slips past the amount is not billed.",
    "It ends by itself with the month, or at once when you raise or remove the budget.",
  ];
}

const THRESHOLD_MAX = 1_000;

/** Parses typed thresholds. Returns null unless all are whole percents from 1 to 1000. */
export function parseThresholds(values: readonly string[]): number[] | null {
  const numbers = values.map((value) => (/^\d{1,4}$/.test(value.trim()) ? Number(value) : 0));
  if (numbers.length === 0 || numbers.some((n) => n < 1 || n > THRESHOLD_MAX)) return null;
  return [...new Set(numbers)].sort((a, b) => a - b);
}

/** Returns an event in a few words. */
export function eventWords({ kind, threshold }: Pick<BudgetEvent, "kind" | "threshold">): string {
  if (kind === "threshold_reached") return `${String(threshold ?? 0)} % reached, mail sent`;
  return {
    created: "Created",
    changed: "Changed",
    removed: "Removed",
    suspended: "Produce suspended",
    resumed: "Produce served again",
  }[kind];
}
