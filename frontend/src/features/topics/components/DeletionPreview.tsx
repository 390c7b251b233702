import { Link } from "@tanstack/react-router";
import { type ReactElement, useMemo } from "react";
import { type Column, DataTable } from "@/components/DataTable";
import { Note, NoteMore } from "@/components/Note";
import type { Group, LowWatermark } from "@/lib/api/types";
import { formatCount, formatNumber } from "@/lib/format/bytes";
import { big } from "@/lib/format/whole";
import { unreadBy } from "../deleting";

interface Props {
  clusterId: string;
  topic: string;
  plan: readonly LowWatermark[];
  groups: readonly Group[];
}

/**
 * The preview of a deletion: the records of each partition, and the groups that have not read
 * them.
 */
export function DeletionPreview({ clusterId, topic, plan, groups }: Props): ReactElement {
  const rows = useMemo(() => plan.map((row) => ({ ...row, id: String(row.partition) })), [plan]);
  const columns = useMemo(() => columnsOf(clusterId, topic), [clusterId, topic]);
  const unread = unreadBy(plan, groups, topic);
  return (
    <>
      <DataTable
        label="What goes"
        columns={columns}
        rows={rows}
        rowId={(row) => row.id}
        initialSort={[{ id: "partition", desc: false }]}
      />
      {unread.length > 0 ? (
        <Note tone="waking">
          <strong>
            {unread.length === 1
              ? "A group has not read all of it:"
              : `${formatCount(unread.length)} groups have not read all of it:`}
          </strong>
          {unread.map(({ group, records }) => (
            <NoteMore key={group}>
              {group} would never see {formatNumber(records, "record")}
            </NoteMore>
          ))}
        </Note>
      ) : (
        <Note tone="quiet">No group of this cluster has any of it still to read.</Note>
      )}
    </>
  );
}

function columnsOf(clusterId: string, topic: string): Column<LowWatermark>[] {
  return [
    {
      id: "partition",
      header: "Partition",
      sortBy: (row) => row.partition,
      cell: (row) => row.partition,
    },
    {
      id: "range",
      header: "Offsets",
      cell: ({ low_watermark: low, deleted_offsets: count }) =>
        big(count) === 0n
          ? "–"
          : `${formatCount(big(low) - big(count))} to ${formatCount(big(low) - 1n)}`,
    },
    {
      id: "records",
      header: "Records",
      align: "right",
      sortBy: (row) => big(row.deleted_offsets),
      cell: (row) => formatCount(row.deleted_offsets),
    },
    {
      id: "look",
      header: "",
      align: "right",
      cell: ({ partition, deleted_offsets: count }) =>
        big(count) > 0n && (
          <Link
            to="/clusters/$clusterId/topics/$topic"
            params={{ clusterId, topic }}
            search={{ from: "oldest", partition }}
            target="_blank"
            aria-label={`Look at the oldest records of partition ${String(partition)}`}
          >
            Look
          </Link>
        ),
    },
  ];
}
