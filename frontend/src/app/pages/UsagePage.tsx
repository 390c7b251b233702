import { Group, Stack } from "@mantine/core";
import { useQuery, type UseQueryResult } from "@tanstack/react-query";
import { useNavigate, useSearch } from "@tanstack/react-router";
import { type ReactElement, useMemo } from "react";
import { Empty } from "@/components/Empty";
import { ErrorPanel } from "@/components/ErrorPanel";
import { Note } from "@/components/Note";
import { PageHead } from "@/components/PageHead";
import { Section } from "@/components/Section";
import { SidePanel } from "@/components/SidePanel";
import { storedQuery } from "@/features/usage/api/stored";
import {
  unbilledQuery,
  type UsageFilter,
  usageRowsQuery,
  type UsageSeries,
  usageSeriesQuery,
} from "@/features/usage/api/usage";
import { CompleteNote } from "@/features/usage/components/CompleteNote";
import { GroupTotals } from "@/features/usage/components/GroupTotals";
import { Reconciled, ReconciledMark } from "@/features/usage/components/Reconciled";
import { RowPanel } from "@/features/usage/components/RowPanel";
import { RowSums } from "@/features/usage/components/RowSums";
import { UsageCharts } from "@/features/usage/components/UsageCharts";
import { BilledFilter, MeterFilter, UsageFilters } from "@/features/usage/components/UsageFilters";
import { UsageRows } from "@/features/usage/components/UsageRows";
import { UsageTiles } from "@/features/usage/components/UsageTiles";
import type { Names } from "@/features/usage/names";
import type { GroupBy } from "@/features/usage/series";
import { filteredSums, type MeterSum, sumsOf } from "@/features/usage/sums";
import type { Stored, UsageItem } from "@/lib/api/types";
import { meterName } from "@/lib/format/meters";
import type { UsageSearch } from "../search";
import classes from "./ClusterLayout.module.css";
import { useNames } from "./useNames";

/** The usage over time, by cluster, topic or credential, with the rows that it is the sum of. */
export function UsagePage(): ReactElement {
  const navigate = useNavigate();
  const search = useSearch({ from: "/frame/money/usage" });
  const names = useNames();
  const { range, from, to, cluster, topic, principal, meter, billed, by = "meter" } = search;
  const filter = { range, from, to, cluster, topic, principal };
  const { data: usage, error, refetch } = useQuery(usageSeriesQuery(filter, by));
  const { sums, summed, stored } = useSums(filter);
  const rows = useQuery(usageRowsQuery({ ...filter, meter, billed }));
  const change = (changed: Partial<UsageSearch>): void => {
    void navigate({
      from: "/usage",
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
            topicName={rows.data?.find((row) => row.topic_id === topic)?.topic ?? undefined}
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
                There is more usage than can be shown at once, and the newest is missing in the
                charts. Choose a shorter time, or one cluster.
              </Note>
            )}
            <UsageTiles usage={summed} sums={sums} stored={stored} />
            <UsageCharts usage={usage} by={by} names={names} onZoom={zoom} />
            {by !== "meter" && <Together usage={usage} by={by} names={names} />}
            <Rows
              rows={rows}
              search={search}
              names={names}
              summed={summed}
              sums={sums && filteredSums(sums, { meter, billed })}
              onChange={change}
            />
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

interface TogetherProps {
  usage: UsageSeries | undefined;
  by: GroupBy;
  names: Names;
}

function Together(props: TogetherProps): ReactElement {
  return (
    <Section
      title="Together"
      lead="Over the whole time shown, the greatest first. What is not billed is apart."
    >
      <GroupTotals {...props} />
    </Section>
  );
}

interface Sums {
  /** The range that is summed. */
  summed: UsageSeries | undefined;
  sums: MeterSum[] | undefined;
  stored: Stored | undefined;
}

/** Reads the sums of a range, billed or not, and what topics hold now. */
function useSums(filter: UsageFilter): Sums {
  const { data: summed } = useQuery(usageSeriesQuery(filter, "meter"));
  const { data: unbilled } = useQuery(unbilledQuery(filter));
  const { data: stored } = useQuery({
    ...storedQuery(filter),
    // Of a credential nothing is stored.
    enabled: filter.principal === undefined,
  });
  const sums = useMemo(
    () => summed && sumsOf(summed.items, unbilled?.items),
    [summed, unbilled?.items],
  );
  return { summed, sums, stored };
}

interface RowsProps {
  rows: UseQueryResult<UsageItem[]>;
  search: UsageSearch;
  names: Names;
  summed: UsageSeries | undefined;
  sums: MeterSum[] | undefined;
  onChange: (change: Partial<UsageSearch>) => void;
}

function Rows({ rows, search, names, summed, sums, onChange }: RowsProps): ReactElement {
  const { meter, billed } = search;
  const { data: items, error, refetch } = rows;
  return (
    <div id="rows" style={{ scrollMarginTop: 96 }}>
      <Section
        title="Rows"
        lead="All figures above are sums of these rows, and invoices are priced from billed ones."
        actions={
          <Group gap="sm" miw={0}>
            <BilledFilter
              billed={billed}
              onChange={(value) => {
                onChange({ billed: value });
              }}
            />
            <MeterFilter
              meter={meter}
              onChange={(value) => {
                onChange({ meter: value });
              }}
            />
          </Group>
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
          (items ?? !error) && (
            <Stack gap="md">
              <RowSums usage={summed} sums={sums} />
              <UsageRows rows={items} names={names} />
            </Stack>
          )
        )}
      </Section>
    </div>
  );
}

function NoUsage(): ReactElement {
  return (
    <Empty title="No usage in this time">
      Usage is what clients write and read, what is stored, and the partitions that exist. What was
      written and read appears here within three minutes, and storage and partitions within ten,
      first as provisional figures; the nightly roll-up checks and publishes them. A sleeping
      cluster without records uses nothing.
    </Empty>
  );
}
