import { keepPreviousData, queryOptions } from "@tanstack/react-query";
import { api, body } from "@/lib/api/client";
import { keys } from "@/lib/api/keys";
import { allPages } from "@/lib/api/pages";
import { SLOW } from "@/lib/api/polling";
import type { UsageItem } from "@/lib/api/types";
import { isMeter } from "@/lib/format/meters";
import { type Range, type RangeChoice, resolveRange } from "../ranges";
import type { GroupBy } from "../series";

/** The longest page that the API allows. */
const PAGE = 2_000;

/** At most so many sums are read: enough for a week by the hour of about sixty topics. */
const SUMS_MAX = 40_000;

/** The filter of the usage page. */
export interface UsageFilter extends RangeChoice {
  cluster?: string;
  topic?: string;
  principal?: string;
  meter?: string;
  /** Only what is billed, or only what is not. */
  billed?: boolean;
}

/** The usage of a range, and when it was read. */
export interface UsageSeries {
  range: Range;
  readAt: Date;
  items: UsageItem[];
  completeUntil: string | null;
  /** Whether there was more than could be read, so that the last windows are missing. */
  cut: boolean;
}

const asked = (range: Range) => ({
  from: range.from.toISOString(),
  to: range.to.toISOString(),
  granularity: range.granularity,
});

const idsOf = ({ cluster, topic, principal, meter, billed }: UsageFilter) => ({
  billed,
  cluster_id: cluster,
  topic_id: topic,
  principal,
  meter: meter !== undefined && isMeter(meter) ? meter : undefined,
});

/** The sums that the charts show: by window, meter and group. */
export const usageSeriesQuery = (filter: UsageFilter, by: GroupBy) =>
  queryOptions({
    queryKey: keys.usageSeries({ ...filter, by }),
    queryFn: async (): Promise<UsageSeries> => {
      const readAt = new Date();
      const range = resolveRange(filter, readAt);
      let completeUntil: string | null = null;
      const items = await allPages(async (cursor) => {
        const query = { ...asked(range), ...idsOf(filter), group_by: by, cursor, limit: PAGE };
        const page = await body(api.GET("/api/v1/usage", { params: { query } }));
        completeUntil = page.complete_until;
        return page;
      }, SUMS_MAX);
      return { range, readAt, items, completeUntil, cut: items.length > SUMS_MAX };
    },
    placeholderData: keepPreviousData,
    ...SLOW,
  });

/**
 * What is not billed, by principal: who caused it says why it is not. `filter` has no meter and not
 * whether it is billed.
 */
export const unbilledQuery = (filter: UsageFilter) =>
  usageSeriesQuery({ ...filter, billed: false }, "principal");

/** The usage rows, newest first: those from which invoices are priced, and provisional ones. */
export const usageRowsQuery = (filter: UsageFilter) =>
  queryOptions({
    queryKey: keys.usageRows(filter),
    queryFn: async (): Promise<UsageItem[]> => {
      const range = resolveRange(filter, new Date());
      // There are rows of hours and of days; a range by the month shows the rows of days.
      const granularity = range.granularity === "month" ? ("day" as const) : range.granularity;
      const items = await allPages((cursor) => {
        const query = { ...asked(range), ...idsOf(filter), granularity, cursor, limit: PAGE };
        return body(api.GET("/api/v1/usage", { params: { query } }));
      });
      return items.reverse();
    },
    placeholderData: keepPreviousData,
    ...SLOW,
  });

/** One row with the files it was made from. A published row never changes. */
export const usageRowQuery = (id: string) =>
  queryOptions({
    queryKey: keys.usageRow(id),
    queryFn: () => body(api.GET("/api/v1/usage/rows/{id}", { params: { path: { id } } })),
    staleTime: 600_000,
  });
