import type { ReactElement, ReactNode } from "react";
import { Note, NoteMore } from "@/components/Note";
import type { Cluster } from "@/lib/api/types";

interface Props {
  cluster: Cluster;
  /** Where it can be lifted. */
  action?: ReactNode;
}

/** Says that producers are refused and why, where a budget or an unpaid bill suspended them. */
export function ProduceSuspended({ cluster, action }: Props): ReactElement | null {
  const condition = cluster.status.conditions.find(({ type }) => type === "ProduceSuspended");
  if (!condition || condition.status === "false") return null;
  return (
    <div role="status" style={{ marginBottom: 14 }}>
      <Note tone="suspended" action={action}>
        {condition.message}
        <NoteMore>
          Producers are refused with POLICY_VIOLATION. Consumers go on reading, offsets are
          committed, and every record is kept.
        </NoteMore>
      </Note>
    </div>
  );
}
