import { ActionIcon, Group, SegmentedControl } from "@mantine/core";
import { IconChevronLeft, IconChevronRight } from "@tabler/icons-react";
import { useQuery } from "@tanstack/react-query";
import { Link, useNavigate, useSearch } from "@tanstack/react-router";
import { type ReactElement, useMemo } from "react";
import { Answered } from "@/components/Answered";
import { ErrorPanel } from "@/components/ErrorPanel";
import { Empty } from "@/components/Empty";
import { PageHead } from "@/components/PageHead";
import { Section } from "@/components/Section";
import { budgetListQuery } from "@/features/budgets/api/budgets";
import { costsQuery, pricesQuery } from "@/features/costs/api/costs";
import { CostChart, type Threshold } from "@/features/costs/components/CostChart";
import { CostTiles } from "@/features/costs/components/CostTiles";
import { MeterBars } from "@/features/costs/components/MeterBars";
import { ShareTable } from "@/features/costs/components/ShareTable";
import { TrialNote } from "@/features/costs/components/TrialNote";
import {
  clusterShares,
  dayShares,
  principalShares,
  type Share,
  topicShares,
} from "@/features/costs/shares";
import { storedQuery } from "@/features/usage/api/stored";
import { usageSeriesQuery } from "@/features/usage/api/usage";
import type { Budget, Costs, Price } from "@/lib/api/types";
import { formatMoney } from "@/lib/format/money";
import { monthBefore, monthName, monthOf, monthSpan, monthStart } from "@/lib/format/utc";
import type { CostsSearch } from "../search";
import { useNames } from "./useNames";

/** The costs of a month: so far, forecast, by meter and by cluster, with the budgets. */
export function CostsPage(): ReactElement {
  const present = monthOf(new Date());
  const { month = present } = useSearch({ from: "/frame/money/usage/costs" });
  const { data: costs, error, refetch } = useQuery(costsQuery(month));
  const earlier = useQuery(costsQuery(monthBefore(month)));
  const before = earlier.isError ? null : earlier.data;
  // What topics hold now says nothing of an earlier month.
  const held = useQuery({ ...storedQuery(), enabled: month === present });
  const growth = [
    useQuery(pricesQuery),
    useQuery(usageSeriesQuery(monthSpan(month), "meter")),
    useQuery(budgetListQuery),
  ] as const;
  const [{ data: prices }, { data: usage }, { data: budgets }] = growth;
  const currency = costs?.currency ?? "USD";
  const thresholds = useMemo(
    () => budgets && thresholdsOf(month === present ? budgets : [], currency),
    [budgets, month, present, currency],
  );
  return (
    <>
      <PageHead
        title={monthName(month)}
        lead="In UTC. Figures are provisional until the month's invoice is issued."
        actions={<MonthSteps month={month} present={present} />}
      />
      {error && !costs ? (
        <ErrorPanel
          error={error}
          what="The costs could not be read"
          onRetry={() => void refetch()}
        />
      ) : (
        <>
          {month === present && <TrialNote costs={costs} prices={prices?.prices} />}
          <CostTiles costs={costs} before={before} present={month === present} />
          <Section title="Growth">
            <Answered queries={growth} what="What the chart is made of could not be read">
              <CostChart
                month={month}
                costs={costs}
                prices={prices}
                usage={usage}
                thresholds={thresholds}
              />
            </Answered>
          </Section>
          <Section
            title="Meters"
            lead="Wide: this month. Narrow: the month before. Dashed: what is free."
            actions={<Link to="/prices">Prices</Link>}
          >
            <Answered
              queries={[growth[0], ...(month === present ? [held] : [])]}
              what="The prices, or what is stored, could not be read"
            >
              <MeterBars
                costs={costs}
                before={before}
                prices={prices?.prices}
                stored={month === present ? held.data : undefined}
              />
            </Answered>
          </Section>
          <Parts costs={costs} prices={prices?.prices} />
        </>
      )}
    </>
  );
}

interface PartsProps {
  costs: Costs | undefined;
  prices: readonly Price[] | undefined;
}

type By = NonNullable<CostsSearch["by"]>;

const TITLES: Record<By, string> = {
  cluster: "Cluster",
  topic: "Topic",
  principal: "Credential",
  day: "Day",
};

const LEADS: Record<By, string> = {
  cluster: "Each amount opens the rows that it is made of.",
  topic: "By each one's share of each meter. Each amount opens the rows that it is made of.",
  principal: "By each one's share of each meter. Each amount opens the rows that it is made of.",
  day: "By each day's share of each meter: what is free in a month is free on all days alike.",
};

/** The cost of a month by cluster, by topic, by credential, or by day. */
function Parts({ costs, prices }: PartsProps): ReactElement {
  const navigate = useNavigate();
  const { by = "cluster" } = useSearch({ from: "/frame/money/usage/costs" });
  const { credentials } = useNames();
  const shares = useMemo(() => costs && sharesOf(costs, by, credentials), [costs, by, credentials]);
  const choice = (
    <SegmentedControl
      size="xs"
      aria-label="Cost by"
      value={by}
      data={Object.entries(TITLES).map(([value, label]) => ({ value, label }))}
      onChange={(value) =>
        void navigate({
          to: "/usage/costs",
          search: (before) => ({ ...before, by: value as By }),
          resetScroll: false,
        })
      }
    />
  );
  return (
    <Section title="Where it comes from" lead={LEADS[by]} actions={choice}>
      {costs?.lines.length === 0 ? (
        <Empty title="Nothing was used">
          Clusters appear here within three minutes of their first record; what they store, and
          their partitions, within ten.
        </Empty>
      ) : shares?.length === 0 ? (
        <Empty title="There is nothing to pay">
          All usage of this month is within what is free.
        </Empty>
      ) : (
        <ShareTable
          title={TITLES[by]}
          shares={shares}
          prices={prices}
          currency={costs?.currency ?? "USD"}
          inClusters={by === "topic" || by === "principal"}
          ordered={by === "day"}
        />
      )}
    </Section>
  );
}

function sharesOf(costs: Costs, by: By, credentials: Readonly<Record<string, string>>): Share[] {
  if (by === "topic") return topicShares(costs);
  if (by === "principal") return principalShares(costs, credentials);
  return by === "day" ? dayShares(costs) : clusterShares(costs);
}

function MonthSteps({ month, present }: { month: string; present: string }): ReactElement {
  const navigate = useNavigate();
  const go = (to: string): void => {
    void navigate({
      to: "/usage/costs",
      search: (before) => ({ ...before, month: to === present ? undefined : to }),
    });
  };
  return (
    <Group gap={4}>
      <ActionIcon
        variant="default"
        aria-label="The month before"
        onClick={() => {
          go(monthBefore(month));
        }}
      >
        <IconChevronLeft size={16} />
      </ActionIcon>
      <ActionIcon
        variant="default"
        aria-label="The month after"
        disabled={month >= present}
        onClick={() => {
          go(monthOf(monthStart(month, 1)));
        }}
      >
        <IconChevronRight size={16} />
      </ActionIcon>
    </Group>
  );
}

function thresholdsOf(budgets: readonly Budget[], currency: string): Threshold[] {
  return budgets.map(({ id, name, amount_minor, state }) => ({
    id,
    label: `${name}: ${formatMoney(amount_minor, currency)}`,
    amountMinor: amount_minor,
    over: state === "exceeded",
  }));
}
