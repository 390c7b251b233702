import type { ReactElement, ReactNode } from "react";
import { Note, NoteMore } from "@/components/Note";
import type { Cluster } from "@/lib/api/types";
import { trafficLimitOf } from "../traffic";

interface Props {
  cluster: Cluster;
  /** Where it can be lifted. */
  action?: ReactNode;
}

/** Says that traffic is refused or slowed down and why, because of a budget or an unpaid bill. */
export function TrafficLimited({ cluster, action }: Props): ReactElement | null {
  const limit = trafficLimitOf(cluster);
  if (!limit) return null;
  return <TrafficNote reason={limit.reason} effect={limit.effect} action={action} />;
}

interface NoteProps {
  /** Why, and what ends it. */
  reason: string;
  effect: string;
  action?: ReactNode;
}

/** A limit of traffic: why it holds and who can lift it, and what clients get meanwhile. */
export function TrafficNote({ reason, effect, action }: NoteProps): ReactElement {
  return (
    <div role="status" style={{ marginBottom: 14 }}>
      <Note tone="suspended" action={action}>
        {reason}
        <NoteMore>{effect}</NoteMore>
      </Note>
    </div>
  );
}
