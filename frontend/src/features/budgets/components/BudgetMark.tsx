import type { ReactElement } from "react";
import type { Tone } from "@/components/Note";
import { StateMark } from "@/components/StateMark";
import type { Budget, BudgetState } from "@/lib/api/types";

const MEANINGS: Record<BudgetState, { word: string; tone: Tone }> = {
  ok: { word: "Within", tone: "running" },
  warned: { word: "Warned", tone: "waking" },
  exceeded: { word: "Exceeded", tone: "failed" },
};

/** Shows a budget's state as word, shape and colour. */
export function BudgetMark({
  budget,
}: {
  budget: Pick<Budget, "state" | "suspended_at" | "throttled_at">;
}): ReactElement {
  const { word, tone } = MEANINGS[budget.state];
  return <StateMark tone={tone}>{actsNow(budget) ?? word}</StateMark>;
}

function actsNow({
  suspended_at: suspendedAt,
  throttled_at: throttledAt,
}: Pick<Budget, "suspended_at" | "throttled_at">): string | null {
  if (suspendedAt !== null) return "Exceeded: traffic is refused";
  return throttledAt !== null ? "Exceeded: traffic is slowed down" : null;
}
