import type { ReactElement } from "react";
import type { Budget, BudgetState } from "@/lib/api/types";
import classes from "./BudgetMark.module.css";

const WORDS: Record<BudgetState, string> = {
  ok: "Within",
  warned: "Warned",
  exceeded: "Exceeded",
};

/** A budget's state as word, shape and colour. */
export function BudgetMark({
  budget,
}: {
  budget: Pick<Budget, "state" | "suspended_at">;
}): ReactElement {
  const { state, suspended_at } = budget;
  return (
    <span className={classes.root} data-state={state}>
      <span className={classes.shape} aria-hidden="true" />
      {suspended_at !== null ? "Exceeded: produce is suspended" : WORDS[state]}
    </span>
  );
}
