import type { GroupMember } from "@/lib/api/types";

/** `orders 0–2, 5` for the partitions 0, 1, 2 and 5 of orders. A member may have more partitions
 * than the API names. */
export function assignmentWords({
  assignments,
  truncated,
}: Pick<GroupMember, "assignments" | "truncated">): string {
  const topics = new Map<string, number[]>();
  for (const { topic, partition } of assignments) {
    const known = topics.get(topic);
    if (known === undefined) topics.set(topic, [partition]);
    else known.push(partition);
  }
  const words = [...topics].map(([topic, list]) => `${topic} ${rangeWords(list)}`);
  if (truncated) words.push("and more");
  return words.join("; ") || "none";
}

function rangeWords(numbers: number[]): string {
  const sorted = [...numbers].sort((a, b) => a - b);
  const ranges: [number, number][] = [];
  for (const number of sorted) {
    const last = ranges.at(-1);
    if (last && last[1] + 1 === number) last[1] = number;
    else ranges.push([number, number]);
  }
  return ranges.map(([a, b]) => (a === b ? String(a) : `${String(a)}–${String(b)}`)).join(", ");
}
