import { Button } from "@mantine/core";
import { Link } from "@tanstack/react-router";
import { type ReactElement, useMemo, useState } from "react";
import { ConfirmRow } from "@/components/ConfirmRow";
import { type Column, DataTable } from "@/components/DataTable";
import { RowButton } from "@/components/GuardedButton";
import type { Budget } from "@/lib/api/types";
import { formatMoney } from "@/lib/format/money";
import { useRefusal } from "@/lib/permissions";
import { useRemoveBudget } from "../api/budgets";
import { spentPercent, thresholdWords } from "../words";
import { BudgetMark } from "./BudgetMark";
import classes from "./BudgetTable.module.css";

interface Props {
  budgets: readonly Budget[] | undefined;
}

/** Budgets with what is spent of them, and the ways to change and remove one. */
export function BudgetTable({ budgets }: Props): ReactElement {
  const [asked, setAsked] = useState<Budget>();
  const remove = useRemoveBudget();
  const refused = useRefusal("billing");
  const columns = useMemo(() => columnsOf(setAsked, refused), [refused]);
  return (
    <>
      <DataTable
        label="Budgets"
        columns={columns}
        rows={budgets}
        rowId={(budget) => budget.id}
        initialSort={[{ id: "name", desc: false }]}
      />
      <ConfirmRow
        row={asked}
        onClose={() => {
          setAsked(undefined);
        }}
        mutation={remove}
        name={(budget) => budget.name}
        title="Remove the budget"
        done="is removed"
      >
        {asked?.action === "suspend"
          ? "Nothing limits the month's cost to this amount any more; if it suspended produce, " +
            "producers are served again. A new budget can be made at any time."
          : "No mail is sent for it any more. A new budget can be made at any time."}
      </ConfirmRow>
    </>
  );
}

function columnsOf(
  onRemove: (budget: Budget) => void,
  refused: string | undefined,
): Column<Budget>[] {
  return [
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
      width: 160,
      sortBy: (budget) => budget.action,
      cell: (budget) => (budget.action === "suspend" ? "Suspends produce" : "Mail only"),
    },
    {
      id: "change",
      header: "",
      align: "right",
      width: 150,
      cell: (budget) => (
        <>
          <Button
            variant="subtle"
            color="gray"
            size="compact-xs"
            aria-label={`${refused ? "Look at" : "Edit"} ${budget.name}`}
            renderRoot={(props) => (
              <Link to="/usage/budgets" search={{ panel: budget.id }} {...props} />
            )}
          >
            {refused ? "Look at" : "Edit"}
          </Button>
          <RowButton
            refused={refused}
            aria-label={`Remove ${budget.name}`}
            onClick={() => {
              onRemove(budget);
            }}
          >
            Remove
          </RowButton>
        </>
      ),
    },
  ];
}

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
