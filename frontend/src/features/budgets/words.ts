import type { Budget, BudgetAction, BudgetEvent } from "@/lib/api/types";
import { formatMoney } from "@/lib/format/money";
import { monthName } from "@/lib/format/utc";

export const ACTIONS: { value: BudgetAction; label: string; description: string }[] = [
  {
    value: "notify",
    label: "Send mail",
    description: "Owners, admins and billing get a mail at each threshold. Nothing is stopped.",
  },
  {
    value: "throttle",
    label: "Send mail, and slow traffic down at the amount",
    description:
      "At 100 % each cluster takes and gives out records at a rate at most. All is billed.",
  },
  {
    value: "suspend",
    label: "Send mail, and suspend produce and fetch at the amount",
    description:
      "At 100 % producers and consumers are refused. What is stored goes on being billed.",
  },
];

/** What each action does at the amount, in a table's cell. */
export const ACTION_WORDS: Record<BudgetAction, string> = {
  notify: "Mail only",
  throttle: "Slows traffic down",
  suspend: "Suspends produce and fetch",
};

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

const KIB = 1_024;
const KIB_MIN = 64;
const KIB_MAX = KIB ** 3;

/** Parses a typed rate in KiB a second. Returns bytes, or null unless it is one that is taken. */
export function parseRate(text: string): number | null {
  const kib = /^\d{1,10}$/.test(text.trim()) ? Number(text) : 0;
  return kib >= KIB_MIN && kib <= KIB_MAX ? kib * KIB : null;
}

/** Returns a rate in bytes a second as it is typed, in KiB. */
export function editRate(bytes: number | null): string {
  return String(Math.round((bytes ?? KIB * KIB) / KIB));
}

const ENDS = "It ends by itself with the month, or at once when you raise or remove the budget.";

/** Returns sentences on what happens when a suspending or throttling budget is reached. */
export function consequences(
  action: BudgetAction,
  amountMinor: number,
  currency: string,
): string[] {
  const when = `When this month's cost reaches ${formatMoney(amountMinor, currency)},`;
  if (action === "throttle") {
    return [
      `${when} each cluster slows producers and consumers down to the rate, both together.`,
      "Nothing is refused. All that is produced, fetched and stored goes on being billed.",
      ENDS,
    ];
  }
  return [
    `${when} producers and consumers of every cluster are refused with POLICY_VIOLATION; ` +
      "producers get this budget's name.",
    "Consumers stay in their groups, offsets are committed, and no record is lost.",
    "Usage is evaluated twice a minute. Traffic that slips past the amount is not billed.",
    "Traffic of this month from before you save is billed, also beyond the amount, as far as it " +
      "is counted then: the meter is up to three minutes behind.",
    "Storage and partitions go on being billed, also beyond the amount. Delete topics to end that.",
    ENDS,
  ];
}

/** Returns what a budget does through a month, as was promised when it was set. */
export function promiseWords(month: string): string {
  return (
    `Through ${monthName(month)} this budget refuses producers alone, and caps storage, too, as ` +
    "was promised when it was set. A change puts the rule below in force at once."
  );
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
    suspended: "Traffic refused",
    throttled: "Traffic slowed down",
    resumed: "Traffic served again",
  }[kind];
}
