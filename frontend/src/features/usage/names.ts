import type { UsageItem } from "@/lib/api/types";
import type { GroupBy } from "./series";
import { NOT_BILLED, OTHERS } from "./series";

/** The principal of the service itself, whose usage is never billed. */
export const OURS = "User:__freshet";

/** The names of ids. Where a name is not known, the id is shown. */
export interface Names {
  clusters: ReadonlyMap<string, string>;
  /** The names of credentials by principal. */
  credentials: Readonly<Record<string, string>>;
}

export function clusterName(id: string | null, names: Names): string {
  return id ? (names.clusters.get(id) ?? id) : "–";
}

/** `known`: the name that came with the principal, as of API keys and members. */
export function principalName(
  principal: string | null,
  names: Names,
  known: string | null = null,
): string {
  if (!principal) return "–";
  if (principal === OURS) return "Freshet itself";
  return known ?? names.credentials[principal] ?? principal;
}

/** Returns a function that gives the words for a group's key in a chart. */
export function groupNames(
  items: readonly UsageItem[],
  by: GroupBy,
  names: Names,
): (key: string) => string {
  const nameOf = billedNames(items, by, names);
  return (key) => (key === NOT_BILLED ? "Not billed" : nameOf(key));
}

function billedNames(
  items: readonly UsageItem[],
  by: GroupBy,
  names: Names,
): (key: string) => string {
  if (by === "cluster") return (key) => clusterName(key, names);
  if (by === "principal") {
    const known = new Map(items.map((item) => [item.principal, item.principal_name]));
    return (key) => (key ? principalName(key, names, known.get(key)) : "No credential");
  }
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
