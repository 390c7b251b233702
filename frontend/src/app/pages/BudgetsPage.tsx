import { Button, Stack } from "@mantine/core";
import { IconPlus } from "@tabler/icons-react";
import { useQuery } from "@tanstack/react-query";
import type { ReactElement } from "react";
import { CodeBlock } from "@/components/CodeBlock";
import { Empty } from "@/components/Empty";
import { ErrorPanel } from "@/components/ErrorPanel";
import { PageHead } from "@/components/PageHead";
import { SidePanel } from "@/components/SidePanel";
import { budgetListQuery } from "@/features/budgets/api/budgets";
import { BudgetEvents } from "@/features/budgets/components/BudgetEvents";
import { EditBudgetForm, NewBudgetForm } from "@/features/budgets/components/BudgetForm";
import { BudgetTable } from "@/features/budgets/components/BudgetTable";
import { costsQuery } from "@/features/costs/api/costs";
import { monthOf } from "@/lib/format/utc";
import { usePanel } from "./usePanel";

/** The same by REST: what a script would send. */
function command(): string {
  return [
    `curl -X POST ${location.origin}/api/v1/budgets \\`,
    `  -H "Authorization: Bearer $FRESHET_API_KEY" -H 'Content-Type: application/json' \\`,
    `  -d '{"name": "team", "amount_minor": 5000, "thresholds": [50, 80, 100], ` +
      `"action": "notify"}'`,
  ].join("\n");
}

/** Amounts that a month is meant to stay below, and what happens at them. */
export function BudgetsPage(): ReactElement {
  const panel = usePanel("new");
  const { data: budgets, error, refetch } = useQuery(budgetListQuery);
  const costs = useQuery(costsQuery(monthOf(new Date()))).data;
  const currency = costs?.currency ?? "USD";
  const edited = budgets?.find(({ id }) => id === panel.name);
  const form = { currency, spentMinor: costs?.total_minor, onDone: panel.close };
  const button = (
    <Button leftSection={<IconPlus size={14} />} onClick={panel.open}>
      New budget
    </Button>
  );
  return (
    <>
      <PageHead
        title="Budgets"
        lead="What a month may cost. A budget sends mail at its thresholds, and can stop produce."
        actions={button}
      />
      {error && !budgets && (
        <ErrorPanel
          error={error}
          what="The budgets could not be read"
          onRetry={() => void refetch()}
        />
      )}
      {budgets?.length === 0 ? (
        <Empty title="No budget" action={<CodeBlock title="Or by REST" code={command()} />}>
          A budget watches the cost of each month and sends mail before it is spent. One that
          suspends is a hard stop: what slips past it is not billed.
        </Empty>
      ) : (
        (budgets ?? !error) && <BudgetTable budgets={budgets} />
      )}
      <SidePanel opened={panel.opened} onClose={panel.close} title="New budget">
        <NewBudgetForm {...form} />
      </SidePanel>
      <SidePanel
        opened={edited !== undefined}
        onClose={panel.close}
        title={`Edit ${edited?.name ?? "the budget"}`}
      >
        {edited && (
          <Stack gap="xl">
            <EditBudgetForm key={edited.generation} budget={edited} {...form} />
            <BudgetEvents budget={edited} />
          </Stack>
        )}
      </SidePanel>
    </>
  );
}
