import { Skeleton, Stack } from "@mantine/core";
import { IconPlus } from "@tabler/icons-react";
import { useQuery } from "@tanstack/react-query";
import type { ReactElement } from "react";
import { Answered } from "@/components/Answered";
import { CodeBlock } from "@/components/CodeBlock";
import { Empty } from "@/components/Empty";
import { GuardedButton } from "@/components/GuardedButton";
import { Listed } from "@/components/Listed";
import { Note } from "@/components/Note";
import { PageHead } from "@/components/PageHead";
import { SidePanel } from "@/components/SidePanel";
import { budgetListQuery } from "@/features/budgets/api/budgets";
import { BudgetEvents } from "@/features/budgets/components/BudgetEvents";
import { EditBudgetForm, NewBudgetForm } from "@/features/budgets/components/BudgetForm";
import { BudgetTable } from "@/features/budgets/components/BudgetTable";
import { costsQuery } from "@/features/costs/api/costs";
import { monthCost } from "@/features/costs/clusters";
import { monthOf } from "@/lib/format/utc";
import { useRefusal } from "@/lib/permissions";
import { usePanel } from "./usePanel";

/** The command that makes a budget by REST, for scripts. */
function command(): string {
  return [
    `curl -X POST ${location.origin}/api/v1/budgets \\`,
    `  -H "Authorization: Bearer $FRESHET_API_KEY" -H 'Content-Type: application/json' \\`,
    `  -d '{"name": "team", "amount_minor": 5000, "thresholds": [50, 80, 100], ` +
      `"action": "notify"}'`,
  ].join("\n");
}

/** The budgets of the organization. */
export function BudgetsPage(): ReactElement {
  const panel = usePanel("new");
  const refused = useRefusal("billing");
  const budgets = useQuery(budgetListQuery);
  const costsOfMonth = useQuery(costsQuery(monthOf(new Date())));
  const costs = costsOfMonth.data;
  const edited = budgets.data?.find(({ id }) => id === panel.name);
  // An amount is in the organization's currency, and means nothing before that is known.
  const form = costs && {
    currency: costs.currency,
    spentMinor: monthCost(costs).soFar,
    onDone: panel.close,
  };
  const button = (
    <GuardedButton refused={refused} leftSection={<IconPlus size={14} />} onClick={panel.open}>
      New budget
    </GuardedButton>
  );
  return (
    <>
      <PageHead
        title="Budgets"
        lead="What a month may cost. A budget sends mail, and can refuse traffic or slow it down."
        actions={button}
      />
      <Listed
        query={budgets}
        what="The budgets could not be read"
        empty={
          <Empty title="No budget" action={<CodeBlock title="Or by REST" code={command()} />}>
            A budget watches the cost of each month and sends mail before it is spent. One that
            suspends is a hard stop: traffic that slips past it is not billed.
          </Empty>
        }
      >
        {(rows) => <BudgetTable budgets={rows} />}
      </Listed>
      <SidePanel opened={panel.opened && !refused} onClose={panel.close} title="New budget">
        <Answered queries={[costsOfMonth]} what="The currency could not be read">
          {form ? <NewBudgetForm {...form} /> : <Skeleton height={320} />}
        </Answered>
      </SidePanel>
      <SidePanel
        opened={edited !== undefined}
        onClose={panel.close}
        title={`${refused ? "" : "Edit "}${edited?.name ?? "the budget"}`}
      >
        {edited && (
          <Stack gap="xl">
            {refused ? (
              <Note tone="quiet">{refused}</Note>
            ) : (
              <Answered queries={[costsOfMonth]} what="The currency could not be read">
                {form ? (
                  <EditBudgetForm key={edited.generation} budget={edited} {...form} />
                ) : (
                  <Skeleton height={320} />
                )}
              </Answered>
            )}
            <BudgetEvents budget={edited} />
          </Stack>
        )}
      </SidePanel>
    </>
  );
}
