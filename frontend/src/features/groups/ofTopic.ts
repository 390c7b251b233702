import type { Group } from "@/lib/api/types";
import { sumLag } from "@/lib/format/lag";

/** Returns the groups that read a topic, with members and lag of this topic alone. */
export function groupsOfTopic(groups: readonly Group[], topic: string): Group[] {
  return groups.flatMap((group) => {
    const partitions = group.partitions.filter((partition) => partition.topic === topic);
    const members = group.members.filter((member) =>
      member.assignments.some((assignment) => assignment.topic === topic),
    );
    if (partitions.length === 0 && members.length === 0) return [];
    return [{ ...group, partitions, members, ...sumLag(partitions) }];
  });
}
