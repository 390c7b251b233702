import type { Costs } from "@/lib/api/types";
import type { Share } from "./components/ShareTable";

const OTHERS = "All others";

/** The cost by topic; what is of no topic stands by itself. */
export function topicShares({ by_topic }: Costs): Share[] {
  return by_topic.map(({ cluster_id, cluster, topic_id, topic, amount_minor }) => ({
    key: `${cluster_id ?? ""}/${topic_id ?? ""}`,
    name: cluster_id === null ? OTHERS : topic || topic_id || "No topic",
    cluster: cluster ?? cluster_id ?? "",
    amount: amount_minor,
  }));
}

/** The cost by credential; `nameOf` has the names of principals. */
export function principalShares(
  { by_principal }: Costs,
  nameOf: Readonly<Record<string, string>>,
): Share[] {
  return by_principal.map(({ cluster_id, cluster, principal, amount_minor }) => ({
    key: `${cluster_id ?? ""}/${principal ?? ""}`,
    name: cluster_id === null ? OTHERS : principalWords(principal, nameOf),
    cluster: cluster ?? cluster_id ?? "",
    amount: amount_minor,
  }));
}

function principalWords(
  principal: string | null,
  nameOf: Readonly<Record<string, string>>,
): string {
  return principal ? (nameOf[principal] ?? principal) : "Nobody: what is stored or kept";
}
