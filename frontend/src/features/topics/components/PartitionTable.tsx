import { type ReactElement, useMemo } from "react";
import { type Column, DataTable } from "@/components/DataTable";
import { formatCount } from "@/lib/format/bytes";
import type { PartitionRange, TopicDetail } from "@/lib/api/types";
import classes from "./PartitionTable.module.css";

/** Partitions with the offsets that they hold, and a bar for their share of the records. */
export function PartitionTable({ topic }: { topic: TopicDetail }): ReactElement {
  const rows = topic.offsets;
  const most = Math.max(1, ...rows.map(recordsIn));
  const columns = useMemo(() => columnsOf(most), [most]);
  return (
    <DataTable
      label="Partitions"
      columns={columns}
      rows={rows}
      rowId={(row) => String(row.partition)}
      initialSort={[{ id: "partition", desc: false }]}
    />
  );
}

function recordsIn({ earliest, end }: PartitionRange): number {
  return earliest === null || end === null ? 0 : end - earliest;
}

const offset = (value: number | null): string => (value === null ? "–" : formatCount(value));

function columnsOf(most: number): Column<PartitionRange>[] {
  return [
    {
      id: "partition",
      header: "Partition",
      width: 100,
      sortBy: (row) => row.partition,
      cell: (row) => row.partition,
    },
    {
      id: "earliest",
      header: "First offset",
      align: "right",
      width: 140,
      cell: (row) => offset(row.earliest),
    },
    { id: "end", header: "End", align: "right", width: 140, cell: (row) => offset(row.end) },
    {
      id: "records",
      header: "Offsets held",
      align: "right",
      width: 140,
      sortBy: recordsIn,
      cell: (row) => formatCount(recordsIn(row)),
    },
    {
      id: "share",
      header: "",
      cell: (row) => (
        <span
          className={classes.bar}
          style={{ width: `${String((100 * recordsIn(row)) / most)}%` }}
          aria-hidden="true"
        />
      ),
    },
  ];
}
