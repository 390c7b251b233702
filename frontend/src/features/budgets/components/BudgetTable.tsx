import { Button } from "@mantine/core";
import { Link } from "@tanstack/react-router";
import type { ReactElement } from "react";
import type { Column } from "@/components/DataTable";
import { RemovableTable } from "@/components/RemovableTable";
import type { Budget } from "@/lib/api/types";
import { formatMoney } from "@/lib/format/money";
import { useRefusal } from "@/lib/permissions";
import { useRemoveBudget } from "../api/budgets";
import { ACTION_WORDS, spentPercent, thresholdWords } from "../words";
import { BudgetMark } from "./BudgetMark";
import classes from "./BudgetTable.module.css";

interface Props {
  budgets: readonly Budget[] | undefined;
}

/** The budgets with the amounts spent, and buttons to change and remove them. */
export function BudgetTable({ budgets }: Props): ReactElement {
  const refused = useRefusal("billing");
  const verb = refused ? "Look at" : "Edit";
  return (
    <RemovableTable
      label="Budgets"
      columns={COLUMNS}
      rows={budgets}
      actionsWidth={150}
      actions={(budget) => (
        <Button
          variant="subtle"
          color="gray"
          size="compact-xs"
          aria-label={`${verb} ${budget.name}`}
          renderRoot={(props) => (
            <Link to="/usage/budgets" search={{ panel: budget.id }} {...props} />
          )}
        >
          {verb}
        </Button>
      )}
      removal={{
        mutation: useRemoveBudget(),
        name: (budget) => budget.name,
        label: "Remove",
        title: "Remove the budget",
        done: "is removed",
        refused,
        effect: ({ action }) =>
          action !== "notify"
            ? "Nothing stops or slows traffic at this amount any more; if it did, clients are " +
              "served again. A new budget can be made at any time."
            : "No mail is sent for it any more. A new budget can be made at any time.",
      }}
    />
  );
}

const COLUMNS: Column<Budget>[] = [
  { id: "name", header: "Name", sortBy: (budget) => budget.name, cell: (budget) => budget.name },
  {
    id: "state",
    header: "State",
    sortBy: (budget) => budget.state,
    cell: (budget) => <BudgetMark budget={budget} />,
  },
  {
    id: "spent",
    header: "Spent this month",
    width: 260,
    sortBy: (budget) => budget.spent_minor / budget.amount_minor,
    cell: (budget) => <Spent budget={budget} />,
  },
  {
    id: "thresholds",
    header: "Mail at",
    width: 150,
    cell: (budget) => thresholdWords(budget.thresholds),
  },
  {
    id: "action",
    header: "At the amount",
    width: 200,
    sortBy: (budget) => budget.action,
    cell: (budget) => ACTION_WORDS[budget.action],
  },
];

function Spent({ budget }: { budget: Budget }): ReactElement {
  const percent = spentPercent(budget);
  const { currency } = budget;
  return (
    <span className={classes.spent}>
      <span className={classes.track} data-state={budget.state} aria-hidden="true">
        <span className={classes.fill} style={{ width: `${String(Math.min(100, percent))}%` }} />
        {budget.thresholds
          .filter((threshold) => threshold < 100)
          .map((threshold) => (
            <span
              key={threshold}
              className={classes.tick}
              style={{ left: `${String(threshold)}%` }}
            />
          ))}
      </span>
      <span title={`${String(percent)} %`}>
        {formatMoney(budget.spent_minor, currency)} of {formatMoney(budget.amount_minor, currency)}
      </span>
    </span>
  );
}
