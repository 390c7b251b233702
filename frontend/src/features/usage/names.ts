import type { UsageItem } from "@/lib/api/types";
import type { GroupBy } from "./series";
import { OTHERS } from "./series";

/** The principal of the service itself: what it reads and writes is never billed. */
const OURS = "User:__freshet";

/** What ids are called. A name that is not known any more leaves the id. */
export interface Names {
  clusters: ReadonlyMap<string, string>;
  /** By principal. */
  credentials: Readonly<Record<string, string>>;
}

export function clusterName(id: string | null, names: Names): string {
  return id ? (names.clusters.get(id) ?? id) : "–";
}

export function principalName(principal: string | null, names: Names): string {
  if (!principal) return "–";
  if (principal === OURS) return "Freshet itself";
  return names.credentials[principal] ?? principal;
}

/** Words for each group's key in a chart. */
export function groupNames(
  items: readonly UsageItem[],
  by: GroupBy,
  names: Names,
): (key: string) => string {
  if (by === "cluster") return (key) => clusterName(key, names);
  if (by === "principal") return (key) => (key ? principalName(key, names) : "No credential");
  if (by === "meter") return () => "All";
  const several = new Set(items.map((item) => item.cluster_id)).size > 1;
  const topics = new Map<string, string>();
  for (const { cluster_id, topic_id, topic } of items) {
    if (!topic_id) continue;
    const name = topic ?? topic_id;
    const key = `${cluster_id ?? ""}/${topic_id}`;
    topics.set(key, several ? `${clusterName(cluster_id, names)} / ${name}` : name);
  }
  return (key) => (key && key !== OTHERS ? (topics.get(key) ?? key) : "No topic");
}
