import type { ReactElement } from "react";
import { type Column, DataTable } from "@/components/DataTable";
import type { PlannedOffset } from "@/lib/api/types";
import { formatCount } from "@/lib/format/bytes";
import { moveOf } from "../reset";

/** The plan of a reset: the old and new offset of each partition. */
export function ResetPreview({ plan }: { plan: PlannedOffset[] }): ReactElement {
  return (
    <DataTable
      label="What would change"
      columns={COLUMNS}
      rows={plan}
      rowId={(row) => `${row.topic}/${String(row.partition)}`}
    />
  );
}

function moveWords(planned: PlannedOffset): string {
  const move = moveOf(planned);
  if (move === null) return "new";
  if (move === 0n) return "stays";
  return `${move > 0n ? "+" : "−"}${formatCount(move > 0n ? move : -move)}`;
}

const COLUMNS: Column<PlannedOffset>[] = [
  {
    id: "place",
    header: "Partition",
    cell: (row) => (
      <span style={{ fontFamily: "var(--mantine-font-family-monospace)" }}>
        {row.topic} {row.partition}
      </span>
    ),
  },
  {
    id: "current",
    header: "Now",
    align: "right",
    cell: (row) => (row.current === null ? "–" : formatCount(row.current)),
  },
  { id: "target", header: "Then", align: "right", cell: (row) => formatCount(row.target) },
  { id: "move", header: "Moves by", align: "right", cell: moveWords },
  { id: "lag", header: "Lag then", align: "right", cell: (row) => formatCount(row.lag_after) },
];
