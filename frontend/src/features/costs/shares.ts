import type { Costs, MeterPart } from "@/lib/api/types";
import { utcDay } from "@/lib/format/utc";
import { type RowsSearch, rowsOfDay, rowsOfMonth } from "./links";

/** A part of a month's cost. */
export interface Share {
  key: string;
  name: string;
  /** What its name sorts by. */
  order: string;
  /** The name of its cluster; empty where it is of several. */
  cluster: string;
  meters: readonly MeterPart[];
  /** In minor units. */
  amount: number;
  /** The search for its usage rows; null for the sum of all others, which have no name. */
  rows: RowsSearch | null;
}

const OTHERS = "All others";

/** Returns the cost by cluster. */
export function clusterShares({ by_cluster, month }: Costs): Share[] {
  return by_cluster.map(({ cluster_id, cluster, meters, amount_minor }) => ({
    key: cluster_id,
    name: cluster,
    order: cluster,
    cluster: "",
    meters,
    amount: amount_minor,
    rows: rowsOfMonth(month, { cluster: cluster_id }),
  }));
}

/** Returns the cost by topic, with one part for what belongs to no topic. */
export function topicShares({ by_topic, month }: Costs): Share[] {
  return by_topic.map(({ cluster_id, cluster, topic_id, topic, meters, amount_minor }) => {
    const name = cluster_id === null ? OTHERS : topic || topic_id || "No topic";
    const place = cluster_id === null ? null : { cluster: cluster_id, topic: topic_id ?? "" };
    return {
      key: `${cluster_id ?? ""}/${topic_id ?? ""}`,
      name,
      order: name,
      cluster: cluster ?? cluster_id ?? "",
      meters,
      amount: amount_minor,
      rows: place && rowsOfMonth(month, place),
    };
  });
}

/** Returns the cost by credential, API key and member. `nameOf`: the names of credentials. */
export function principalShares(
  { by_principal, month }: Costs,
  nameOf: Readonly<Record<string, string>>,
): Share[] {
  return by_principal.map((share) => {
    const { cluster_id, cluster, principal, principal_name, meters, amount_minor } = share;
    const known = principal_name ?? principalWords(principal, nameOf);
    const name = cluster_id === null ? OTHERS : known;
    const place = cluster_id === null ? null : { cluster: cluster_id, principal: principal ?? "" };
    return {
      key: `${cluster_id ?? ""}/${principal ?? ""}`,
      name,
      order: name,
      cluster: cluster ?? cluster_id ?? "",
      meters,
      amount: amount_minor,
      rows: place && rowsOfMonth(month, place),
    };
  });
}

/** Returns the cost by day, each day's by its share of what was used. */
export function dayShares({ by_day }: Costs): Share[] {
  return by_day.map(({ day, meters, amount_minor }) => ({
    key: day,
    name: utcDay(new Date(day)),
    order: day,
    cluster: "",
    meters,
    amount: amount_minor,
    rows: rowsOfDay(day),
  }));
}

function principalWords(
  principal: string | null,
  nameOf: Readonly<Record<string, string>>,
): string {
  return principal ? (nameOf[principal] ?? principal) : "No credential: what is stored or kept";
}
