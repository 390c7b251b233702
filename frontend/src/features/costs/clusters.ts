import type { Costs } from "@/lib/api/types";
import { big } from "@/lib/format/whole";

/** Returns the cost of a cluster in a month so far, and its forecast, in minor units. */
export function clusterCost(
  { lines }: Pick<Costs, "lines">,
  clusterId: string,
): { soFar: number; forecast: number } {
  const own = lines.filter((line) => line.cluster_id === clusterId);
  return {
    soFar: own.reduce((sum, line) => sum + line.amount_minor, 0),
    forecast: own.reduce((sum, line) => sum + line.forecast_minor, 0),
  };
}

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
