import type { DeleteRecords, Group, LowWatermark } from "@/lib/api/types";
import { big, compareWhole, INT64_MAX, parseWhole } from "@/lib/format/whole";

/** The records of a topic to delete, as the form holds them. */
export interface Choice {
  /** The numbers of partitions as text; empty for all partitions. */
  partitions: string[];
  /** The typed offset; empty for all records. */
  before: string;
}

/** Returns what is wrong with a choice; null where nothing is. */
export function choiceComplaint({ before }: Choice): string | null {
  if (before.trim() === "") return null;
  const offset = parseWhole(before);
  const fits = offset !== undefined && big(offset) >= 0n && big(offset) <= INT64_MAX;
  return fits ? null : "A whole number, or empty for all records";
}

/** Returns the request for a valid choice. `count`: the topic's number of partitions. */
export function deletionOf({ partitions, before }: Choice, count: number): DeleteRecords {
  const numbers =
    partitions.length > 0 ? partitions.map(Number) : Array.from({ length: count }, (_, n) => n);
  const offset = before.trim() === "" ? "-1" : (parseWhole(before) ?? before);
  return {
    partitions: numbers
      .sort((one, other) => one - other)
      .map((partition) => ({ partition, before_offset: offset })),
  };
}

/**
 * Returns how many records are deleted at most: offsets that compaction removed are counted too.
 */
export function totalOf(plan: readonly LowWatermark[]): bigint {
  return plan.reduce((sum, { deleted_offsets }) => sum + big(deleted_offsets), 0n);
}

/** A group that has not read all records to delete, and how many it would miss. */
export interface Unread {
  group: string;
  records: bigint;
}

/** Returns the groups that have not read all records to delete, those that miss most first. */
export function unreadBy(
  plan: readonly LowWatermark[],
  groups: readonly Group[],
  topic: string,
): Unread[] {
  const lows = new Map(plan.map((low) => [low.partition, low]));
  const unread = groups.map(({ group, partitions }) => ({
    group,
    records: partitions.reduce((sum, partition) => {
      const planned = partition.topic === topic ? lows.get(partition.partition) : undefined;
      if (planned === undefined || partition.committed === null) return sum;
      const missed = big(planned.low_watermark) - big(partition.committed);
      const deleted = big(planned.deleted_offsets);
      return missed <= 0n ? sum : sum + (missed < deleted ? missed : deleted);
    }, 0n),
  }));
  return unread
    .filter(({ records }) => records > 0n)
    .sort((one, other) => compareWhole(other.records, one.records));
}
