import type { Costs } from "@/lib/api/types";
import { big } from "@/lib/format/whole";

/** What a month is billed, in minor units: so far, and at its end if all goes on as now. */
export interface MonthCost {
  soFar: number;
  forecast: number;
  /** What is not billed because it slipped past a budget. */
  beyond: number;
}

/**
 * Returns what a month costs, all of it or the part of one cluster. Every page takes these amounts
 * from here: budgets count in them, so that the clusters' parts sum to the whole.
 */
export function monthCost(
  costs: Pick<Costs, "total_minor" | "forecast_minor" | "beyond_budget_minor" | "by_cluster">,
  clusterId?: string,
): MonthCost {
  if (clusterId === undefined) {
    const { total_minor: soFar, forecast_minor: forecast, beyond_budget_minor: beyond } = costs;
    return { soFar, forecast, beyond };
  }
  const share = costs.by_cluster.find(({ cluster_id }) => cluster_id === clusterId);
  if (!share) return { soFar: 0, forecast: 0, beyond: 0 };
  const { billed_minor: soFar, forecast_minor: forecast, amount_minor: amount } = share;
  return { soFar, forecast, beyond: amount - soFar };
}

/** What a forecast stands on, behind its amount. */
export const FORECAST_BASIS = "if all goes on as now; traffic that is refused stays refused";

/** Returns the sum of a meter over all clusters: quantity in base units, amount in minor units. */
export function meterTotal(
  { lines }: Pick<Costs, "lines">,
  meter: string,
): { quantity: bigint; amount: number } {
  const own = lines.filter((line) => line.meter === meter);
  return {
    quantity: own.reduce((sum, line) => sum + big(line.quantity), 0n),
    amount: own.reduce((sum, line) => sum + line.amount_minor, 0),
  };
}
