import type { CostLine, Costs } from "@/lib/api/types";

/** What one cluster costs. */
export interface ClusterCost {
  id: string;
  name: string;
  lines: CostLine[];
  /** In minor units. */
  total: number;
}

/** The lines of each cluster. */
export function byCluster(lines: readonly CostLine[]): ClusterCost[] {
  const found = new Map<string, ClusterCost>();
  for (const line of lines) {
    const { cluster_id: id, cluster: name } = line;
    const cost = found.get(id) ?? { id, name: name || id, lines: [], total: 0 };
    cost.lines.push(line);
    cost.total += line.amount_minor;
    found.set(id, cost);
  }
  return [...found.values()];
}

/** What one cluster costs in a month so far and by its end, in minor units. */
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

/** A meter over all clusters: its quantity in base units, and its amount in minor units. */
export function meterTotal(
  { lines }: Pick<Costs, "lines">,
  meter: string,
): { quantity: number; amount: number } {
  const own = lines.filter((line) => line.meter === meter);
  return {
    quantity: own.reduce((sum, line) => sum + line.quantity, 0),
    amount: own.reduce((sum, line) => sum + line.amount_minor, 0),
  };
}
