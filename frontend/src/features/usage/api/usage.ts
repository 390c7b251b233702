import { infiniteQueryOptions, keepPreviousData, queryOptions } from "@tanstack/react-query";
import { api, body } from "@/lib/api/client";
import { keys } from "@/lib/api/keys";
import { allPages } from "@/lib/api/pages";
import { SLOW } from "@/lib/api/polling";
import type { UsageItem } from "@/lib/api/types";
import { type Range, type RangeChoice, resolveRange } from "../ranges";
import type { GroupBy } from "../series";

/** Which usage is looked at. */
export interface UsageFilter extends RangeChoice {
  cluster?: string;
  topic?: string;
  meter?: string;
}

/** Usage of a range at the moment when it was read. */
export interface UsageSeries {
  range: Range;
  readAt: Date;
  items: UsageItem[];
  completeUntil: string | null;
}

const asked = (range: Range) => ({
  from: range.from.toISOString(),
  to: range.to.toISOString(),
  granularity: range.granularity,
});

const idsOf = ({ cluster, topic, meter }: UsageFilter) => ({
  cluster_id: cluster,
  topic_id: topic,
  meter,
});

/** What the charts show: each window's sums by meter, and by group within each. */
export const usageSeriesQuery = (filter: UsageFilter, by: GroupBy) =>
  queryOptions({
    queryKey: keys.usageSeries({ ...filter, by }),
    queryFn: async (): Promise<UsageSeries> => {
      const readAt = new Date();
      const range = resolveRange(filter, readAt);
      let completeUntil: string | null = null;
      const items = await allPages(async (cursor) => {
        const query = { ...asked(range), ...idsOf(filter), group_by: by, cursor };
        const page = await body(api.GET("/api/v1/usage", { params: { query } }));
        completeUntil = page.complete_until;
        return page;
      });
      return { range, readAt, items, completeUntil };
    },
    placeholderData: keepPreviousData,
    ...SLOW,
  });

/** The rows themselves, page by page: those that price the invoice, and provisional ones. */
export const usageRowsQuery = (filter: UsageFilter) =>
  infiniteQueryOptions({
    queryKey: keys.usageRows(filter),
    queryFn: ({ pageParam }) => {
      const range = resolveRange(filter, new Date());
      // Rows are kept by the hour and by the day; those of a month are its days.
      const granularity = range.granularity === "month" ? ("day" as const) : range.granularity;
      const query = {
        ...asked(range),
        ...idsOf(filter),
        granularity,
        group_by: "none" as const,
        cursor: pageParam,
      };
      return body(api.GET("/api/v1/usage", { params: { query } }));
    },
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (page) => page.next_cursor ?? undefined,
    placeholderData: keepPreviousData,
    ...SLOW,
  });

/** One row with all that is behind it. A published row never changes. */
export const usageRowQuery = (id: string) =>
  queryOptions({
    queryKey: keys.usageRow(id),
    queryFn: () => body(api.GET("/api/v1/usage/rows/{id}", { params: { path: { id } } })),
    staleTime: 600_000,
  });
