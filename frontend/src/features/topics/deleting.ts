import type { DeleteRecords, Group, LowWatermark } from "@/lib/api/types";

/** Which records of a topic shall go, as a form holds it. */
export interface Choice {
  /** Numbers of partitions as text; none for all of them. */
  partitions: string[];
  /** An offset as typed; empty for all records. */
  before: string;
}

/** What is wrong with a choice; null when it can be looked at. */
export function choiceComplaint({ before }: Choice): string | null {
  if (before.trim() === "") return null;
  return /^\d{1,15}$/.test(before.trim()) ? null : "A whole number, or empty for all records";
}

/** The request for a choice without complaint, in a topic of so many partitions. */
export function deletionOf({ partitions, before }: Choice, count: number): DeleteRecords {
  const numbers =
    partitions.length > 0 ? partitions.map(Number) : Array.from({ length: count }, (_, n) => n);
  const offset = before.trim() === "" ? -1 : Number(before);
  return {
    partitions: numbers
      .sort((one, other) => one - other)
      .map((partition) => ({ partition, before_offset: offset })),
  };
}

/** How many records go at most: offsets that a compacted topic has no more are counted too. */
export function totalOf(plan: readonly LowWatermark[]): number {
  return plan.reduce((sum, { deleted_offsets }) => sum + deleted_offsets, 0);
}

/** A group that has not read all that would go, and how many records it would never see. */
export interface Unread {
  group: string;
  records: number;
}

/** Who has not read yet what would go, the one that misses most first. */
export function unreadBy(
  plan: readonly LowWatermark[],
  groups: readonly Group[],
  topic: string,
): Unread[] {
  const lows = new Map(plan.map((each) => [each.partition, each]));
  const found = groups.map(({ group, partitions }) => ({
    group,
    records: partitions.reduce((sum, each) => {
      const planned = each.topic === topic ? lows.get(each.partition) : undefined;
      if (planned === undefined || each.committed === null) return sum;
      const missed = planned.low_watermark - each.committed;
      return sum + Math.min(Math.max(missed, 0), planned.deleted_offsets);
    }, 0),
  }));
  return found
    .filter(({ records }) => records > 0)
    .sort((one, other) => other.records - one.records);
}
