import { type ReactElement, useMemo } from "react";
import { type Column, DataTable } from "@/components/DataTable";
import { RowButton } from "@/components/GuardedButton";
import type { Partition } from "@/lib/api/types";
import { formatCount } from "@/lib/format/bytes";

interface Props {
  /** Undefined while they load. */
  partitions: readonly Partition[] | undefined;
  /** Why nothing can be deleted; undefined where it can. */
  refused: string | undefined;
  /** Called for the damaged batch of a partition that begins at an offset. */
  onSkip: (partition: number, offset: string) => void;
}

/** The partitions of a topic with their leaders, and their damaged batches where some are known. */
export function PartitionTable({ partitions, refused, onSkip }: Props): ReactElement {
  const isDamaged = partitions?.some((row) => row.damaged_first_offset !== null) ?? false;
  const columns = useMemo(
    () => (isDamaged ? [...COLUMNS, damageColumn(refused, onSkip)] : COLUMNS),
    [isDamaged, refused, onSkip],
  );
  return (
    <DataTable
      label="Partitions"
      columns={columns}
      rows={partitions}
      rowId={(row) => String(row.partition)}
      initialSort={[{ id: "partition", desc: false }]}
    />
  );
}

function damageColumn(
  refused: string | undefined,
  onSkip: (partition: number, offset: string) => void,
): Column<Partition> {
  return {
    id: "damage",
    header: "Damaged batch",
    align: "right",
    sortBy: (row) => row.damaged_first_offset ?? -1,
    cell: ({ partition, damaged_first_offset: offset }) =>
      offset !== null && (
        <>
          at offset {formatCount(offset)}
          <RowButton
            refused={refused}
            aria-label={`Delete partition ${String(partition)} up to its damaged batch`}
            onClick={() => {
              onSkip(partition, offset);
            }}
          >
            Delete up to it
          </RowButton>
        </>
      ),
  };
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
