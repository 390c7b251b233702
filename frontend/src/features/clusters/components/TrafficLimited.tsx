import type { ReactElement, ReactNode } from "react";
import { Note, NoteMore } from "@/components/Note";
import type { Cluster } from "@/lib/api/types";

interface Props {
  cluster: Cluster;
  /** Where it can be lifted. */
  action?: ReactNode;
}

const EFFECTS = [
  {
    type: "FetchSuspended",
    effect:
      "Producers and consumers are refused with POLICY_VIOLATION. Consumers stay in their groups " +
      "and go on by themselves, offsets are committed, and every record is kept. What is stored " +
      "goes on being billed.",
  },
  {
    type: "ProduceSuspended",
    effect:
      "Producers are refused with POLICY_VIOLATION. Consumers go on reading, offsets are " +
      "committed, and every record is kept.",
  },
  {
    type: "Throttled",
    effect:
      "Producers and consumers are slowed down to this rate together. Nothing is refused, and " +
      "all of it is billed.",
  },
];

/** Says that traffic is refused or slowed down and why, because of a budget or an unpaid bill. */
export function TrafficLimited({ cluster, action }: Props): ReactElement | null {
  const { conditions } = cluster.status;
  for (const { type, effect } of EFFECTS) {
    const condition = conditions.find((shown) => shown.type === type && shown.status !== "false");
    if (condition) {
      return (
        <div role="status" style={{ marginBottom: 14 }}>
          <Note tone="suspended" action={action}>
            {condition.message}
            <NoteMore>{effect}</NoteMore>
          </Note>
        </div>
      );
    }
  }
  return null;
}
