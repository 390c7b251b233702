import { queryOptions } from "@tanstack/react-query";
import { api, body } from "@/lib/api/client";
import { keys } from "@/lib/api/keys";
import { SLOW } from "@/lib/api/polling";

/** The costs of a month like `2026-11`; for the present month with a forecast. */
export const costsQuery = (month: string) =>
  queryOptions({
    queryKey: keys.costs(month),
    queryFn: () => body(api.GET("/api/v1/costs", { params: { query: { month } } })),
    ...SLOW,
  });

/** The present prices. */
export const pricesQuery = queryOptions({
  queryKey: keys.prices,
  queryFn: () => body(api.GET("/api/v1/prices")),
  staleTime: 600_000,
});
