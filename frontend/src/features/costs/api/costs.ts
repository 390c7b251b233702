import { queryOptions } from "@tanstack/react-query";
import { api, body } from "@/lib/api/client";
import { keys } from "@/lib/api/keys";
import { SLOW } from "@/lib/api/polling";

/** What a month costs: so far and, of the present one, by its end. Months are `2026-11`. */
export const costsQuery = (month: string) =>
  queryOptions({
    queryKey: keys.costs(month),
    queryFn: () => body(api.GET("/api/v1/costs", { params: { query: { month } } })),
    ...SLOW,
  });

/** The prices that hold now. */
export const pricesQuery = queryOptions({
  queryKey: keys.prices,
  queryFn: () => body(api.GET("/api/v1/prices")),
  staleTime: 600_000,
});
