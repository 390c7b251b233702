import { type ReactElement, useMemo } from "react";
import { type Column, DataTable } from "@/components/DataTable";
import { Empty } from "@/components/Empty";
import type { Group, GroupPartition } from "@/lib/api/types";
import { formatCount } from "@/lib/format/bytes";
import { formatLag, formatLagSeconds } from "@/lib/format/lag";
import { big } from "@/lib/format/whole";

interface Row extends GroupPartition {
  owner: string;
}

/** The partitions of a group: committed offset, lag, and the member that reads it. */
export function PartitionLag({ group }: { group: Group }): ReactElement {
  const rows = useMemo(() => rowsOf(group), [group]);
  if (rows.length === 0) {
    return (
      <Empty title="No offset is committed">
        A partition is shown once the group commits an offset of it, or a member reads it.
      </Empty>
    );
  }
  return (
    <DataTable
      label="Lag by partition"
      columns={COLUMNS}
      rows={rows}
      rowId={(row) => `${row.topic}/${String(row.partition)}`}
      initialSort={[{ id: "topic", desc: false }]}
    />
  );
}

/** Returns the partitions with a committed offset, and those that a member has without one. */
function rowsOf(group: Group): Row[] {
  const owners = new Map<string, string>();
  for (const member of group.members) {
    for (const { topic, partition } of member.assignments) {
      owners.set(`${topic}/${String(partition)}`, member.client_id || member.member_id);
    }
  }
  const rows = group.partitions.map((partition): Row => {
    const key = `${partition.topic}/${String(partition.partition)}`;
    const owner = owners.get(key) ?? "";
    owners.delete(key);
    return { ...partition, owner };
  });
  for (const [key, owner] of owners) {
    const cut = key.lastIndexOf("/");
    const place = { topic: key.slice(0, cut), partition: Number(key.slice(cut + 1)) };
    rows.push({ ...place, committed: null, end: null, lag: null, lag_seconds: null, owner });
  }
  return rows;
}

const offset = (value: string | null): string => (value === null ? "–" : formatCount(value));

const COLUMNS: Column<Row>[] = [
  {
    id: "topic",
    header: "Topic",
    sortBy: (row) => `${row.topic}/${String(row.partition).padStart(9, "0")}`,
    cell: (row) => (
      <span style={{ fontFamily: "var(--mantine-font-family-monospace)" }}>{row.topic}</span>
    ),
  },
  {
    id: "partition",
    header: "Partition",
    align: "right",
    width: 90,
    sortBy: (row) => row.partition,
    cell: (row) => row.partition,
  },
  {
    id: "committed",
    header: "Committed",
    align: "right",
    width: 120,
    cell: (row) => offset(row.committed),
  },
  { id: "end", header: "End", align: "right", width: 120, cell: (row) => offset(row.end) },
  {
    id: "lag",
    header: "Lag, records",
    align: "right",
    width: 120,
    sortBy: (row) => big(row.lag ?? -1),
    cell: (row) => formatLag(row.lag),
  },
  {
    id: "seconds",
    header: "Lag, time",
    align: "right",
    width: 120,
    sortBy: (row) => row.lag_seconds ?? -1,
    cell: (row) => formatLagSeconds(row.lag_seconds),
  },
  { id: "owner", header: "Member", cell: (row) => row.owner || "–" },
];
