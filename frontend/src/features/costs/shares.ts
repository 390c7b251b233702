import type { Costs } from "@/lib/api/types";
import type { Share } from "./components/ShareTable";

const OTHERS = "All others";

/** Returns the cost by topic, with one part for what belongs to no topic. */
export function topicShares({ by_topic }: Costs): Share[] {
  return by_topic.map(({ cluster_id, cluster, topic_id, topic, amount_minor }) => ({
    key: `${cluster_id ?? ""}/${topic_id ?? ""}`,
    name: cluster_id === null ? OTHERS : topic || topic_id || "No topic",
    cluster: cluster ?? cluster_id ?? "",
    amount: amount_minor,
  }));
}

/** Returns the cost by credential, API key and member. `nameOf`: the names of credentials. */
export function principalShares(
  { by_principal }: Costs,
  nameOf: Readonly<Record<string, string>>,
): Share[] {
  return by_principal.map(({ cluster_id, cluster, principal, principal_name, amount_minor }) => ({
    key: `${cluster_id ?? ""}/${principal ?? ""}`,
    name: cluster_id === null ? OTHERS : (principal_name ?? principalWords(principal, nameOf)),
    cluster: cluster ?? cluster_id ?? "",
    amount: amount_minor,
  }));
}

function principalWords(
  principal: string | null,
  nameOf: Readonly<Record<string, string>>,
): string {
  return principal ? (nameOf[principal] ?? principal) : "No credential: what is stored or kept";
}
