import { useQuery } from "@tanstack/react-query";
import { useNavigate, useSearch } from "@tanstack/react-router";
import { type ReactElement } from "react";
import { Empty } from "@/components/Empty";
import { ErrorPanel } from "@/components/ErrorPanel";
import { Note } from "@/components/Note";
import { PageHead } from "@/components/PageHead";
import { Section } from "@/components/Section";
import { SidePanel } from "@/components/SidePanel";
import { usageRowsQuery, usageSeriesQuery } from "@/features/usage/api/usage";
import { CompleteNote } from "@/features/usage/components/CompleteNote";
import { GroupTotals } from "@/features/usage/components/GroupTotals";
import { Reconciled, ReconciledMark } from "@/features/usage/components/Reconciled";
import { RowPanel } from "@/features/usage/components/RowPanel";
import { UsageCharts } from "@/features/usage/components/UsageCharts";
import { MeterFilter, UsageFilters } from "@/features/usage/components/UsageFilters";
import { UsageRows } from "@/features/usage/components/UsageRows";
import { UsageTiles } from "@/features/usage/components/UsageTiles";
import type { Names } from "@/features/usage/names";
import { meterName } from "@/lib/format/meters";
import type { UsageSearch } from "../search";
import classes from "./ClusterLayout.module.css";
import { useNames } from "./useNames";

/** The usage over time, by cluster, topic or credential, with the rows that it is the sum of. */
export function UsagePage(): ReactElement {
  const navigate = useNavigate();
  const search = useSearch({ from: "/frame/money/usage" });
  const names = useNames();
  const { range, from, to, cluster, topic, principal, by = "meter" } = search;
  const filter = { range, from, to, cluster, topic, principal };
  const { data: usage, error, refetch } = useQuery(usageSeriesQuery(filter, by));
  const change = (changed: Partial<UsageSearch>): void => {
    void navigate({
      to: "/usage",
      search: (before) => ({ ...before, ...changed }),
      resetScroll: false,
    });
  };
  const zoom = (start: number, end: number): void => {
    change({ from: new Date(start).toISOString(), to: new Date(end).toISOString() });
  };
  return (
    <>
      <PageHead
        title="Usage"
        lead={
          <span className={classes.facts}>
            <CompleteNote until={usage?.completeUntil} />
            <ReconciledMark clusterId={cluster} />
          </span>
        }
        actions={
          <UsageFilters
            chosen={{ by: search.by, cluster, topic, principal }}
            names={names}
            onChange={change}
          />
        }
      />
      {error && !usage && (
        <ErrorPanel
          error={error}
          what="The usage could not be read"
          onRetry={() => void refetch()}
        />
      )}
      {usage?.items.length === 0 ? (
        <NoUsage />
      ) : (
        (usage ?? !error) && (
          <>
            {usage?.cut && (
              <Note tone="waking">
                There is more usage than can be shown at once, and the newest is missing here.
                Choose a shorter time, or one cluster.
              </Note>
            )}
            <UsageTiles usage={usage} />
            <UsageCharts usage={usage} by={by} names={names} onZoom={zoom} />
            {by !== "meter" && (
              <Section title="Together" lead="Over the whole time shown, the greatest first.">
                <GroupTotals usage={usage} by={by} names={names} />
              </Section>
            )}
            <Rows search={search} names={names} onChange={change} />
            <Reconciled clusterId={cluster} names={names} />
          </>
        )
      )}
      <SidePanel
        opened={search.panel !== undefined}
        onClose={() => {
          change({ panel: undefined });
        }}
        title="Usage row"
        size={560}
      >
        {search.panel !== undefined && <RowPanel id={search.panel} names={names} />}
      </SidePanel>
    </>
  );
}

interface RowsProps {
  search: UsageSearch;
  names: Names;
  onChange: (change: Partial<UsageSearch>) => void;
}

function Rows({ search, names, onChange }: RowsProps): ReactElement {
  const { range, from, to, cluster, topic, principal, meter } = search;
  const filter = { range, from, to, cluster, topic, principal, meter };
  const { data: items, error, refetch } = useQuery(usageRowsQuery(filter));
  return (
    <div id="rows">
      <Section
        title="Rows"
        lead="All figures above are sums of these rows, and invoices are priced from them."
        actions={
          <MeterFilter
            meter={meter}
            onChange={(value) => {
              onChange({ meter: value });
            }}
          />
        }
      >
        {error && !items && (
          <ErrorPanel
            error={error}
            what="The rows could not be read"
            onRetry={() => void refetch()}
          />
        )}
        {items?.length === 0 ? (
          <Empty title="No rows">
            {meter
              ? `Nothing was counted for ${meterName(meter)} in this time.`
              : "Nothing was counted in this time."}
          </Empty>
        ) : (
          (items ?? !error) && <UsageRows rows={items} names={names} />
        )}
      </Section>
    </div>
  );
}

function NoUsage(): ReactElement {
  return (
    <Empty title="No usage in this time">
      Usage is what clients write and read, what is stored, and the partitions that exist. It
      appears here within three minutes of producing, first as provisional figures; the nightly
      roll-up checks and publishes them. A sleeping cluster without records uses nothing.
    </Empty>
  );
}
