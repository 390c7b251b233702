import { Link } from "@tanstack/react-router";
import type { ReactElement } from "react";
import { Note, NoteMore } from "@/components/Note";
import type { Damaged } from "@/lib/api/types";
import { formatCount, formatNumber } from "@/lib/format/bytes";
import { big } from "@/lib/format/whole";

/** So many batches are named; of more only their number. */
const SHOWN = 5;

interface Props {
  clusterId: string;
  topic: string;
  damaged: readonly Damaged[];
}

/** Names the batches that were skipped, each with a link to deleting the records up to it. */
export function DamagedNote({ clusterId, topic, damaged }: Props): ReactElement | null {
  if (damaged.length === 0) return null;
  // Two pages may name the same batch, where one ends within it.
  const batches = [...new Map(damaged.map((batch) => [placeOf(batch), batch])).entries()];
  const more = batches.length - SHOWN;
  return (
    <Note tone="failed">
      {batches.slice(0, SHOWN).map(([place, batch]) => (
        <div key={place}>
          <strong>{damageWords(batch)}</strong>{" "}
          <Link
            to="/clusters/$clusterId/topics/$topic/partitions"
            params={{ clusterId, topic }}
            search={{ panel: `skip-damaged-${place}` }}
          >
            Delete up to here
          </Link>
        </div>
      ))}
      {more > 0 && <NoteMore>and {formatCount(more)} more</NoteMore>}
      <NoteMore>
        Consumers may stop at such a batch. What is stored behind it is shown all the same.
      </NoteMore>
    </Note>
  );
}

function placeOf({ partition, first_offset }: Damaged): string {
  return `${String(partition)}-${first_offset}`;
}

/** Returns what was skipped, in words. */
export function damageWords({ partition, first_offset, next_offset }: Damaged): string {
  const [first, last] = [big(first_offset), big(next_offset) - 1n];
  const range = first === last ? formatCount(last) : `${formatCount(first)}–${formatCount(last)}`;
  const count = formatNumber(last - first + 1n, "offset");
  return `${count} (${range}) of partition ${String(partition)} cannot be decoded: skipped`;
}
