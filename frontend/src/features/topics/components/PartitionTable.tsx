import type { ReactElement } from "react";
import { type Column, DataTable } from "@/components/DataTable";
import type { Partition } from "@/lib/api/types";

interface Props {
  /** Undefined while they load. */
  partitions: readonly Partition[] | undefined;
}

/** The partitions of a topic with their leaders. */
export function PartitionTable({ partitions }: Props): ReactElement {
  return (
    <DataTable
      label="Partitions"
      columns={COLUMNS}
      rows={partitions}
      rowId={(row) => String(row.partition)}
      initialSort={[{ id: "partition", desc: false }]}
    />
  );
}

const COLUMNS: Column<Partition>[] = [
  {
    id: "partition",
    header: "Partition",
    width: 120,
    sortBy: (row) => row.partition,
    cell: (row) => row.partition,
  },
  {
    id: "leader",
    header: "Led by",
    sortBy: (row) => row.leader ?? -1,
    cell: (row) =>
      row.leader === null ? "no broker, while it sleeps" : `broker ${String(row.leader)}`,
  },
  {
    id: "epoch",
    header: "Leader epoch",
    align: "right",
    width: 140,
    cell: (row) => row.leader_epoch,
  },
];
