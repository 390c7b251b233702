import type { ReactElement } from "react";
import type { Tone } from "@/components/Note";
import { StateMark } from "@/components/StateMark";

/** The meanings of Kafka's group states. */
const MEANINGS: Record<string, { word: string; tone: Tone; title: string }> = {
  Stable: { word: "Stable", tone: "running", title: "Members read their partitions." },
  Empty: { word: "Empty", tone: "asleep", title: "No members; the offsets are kept." },
  PreparingRebalance: { word: "Rebalancing", tone: "waking", title: "Members are joining." },
  CompletingRebalance: { word: "Rebalancing", tone: "waking", title: "Partitions are assigned." },
  Assigning: { word: "Assigning", tone: "waking", title: "Partitions are assigned." },
  Reconciling: { word: "Reconciling", tone: "waking", title: "Members take up partitions." },
  Dead: { word: "Dead", tone: "quiet", title: "The group is being removed." },
};

/** Shows a group's state as word, shape and colour. */
export function GroupState({ state }: { state: string }): ReactElement {
  const unknown = { word: state, tone: "quiet", title: state } as const;
  const { word, tone, title } = MEANINGS[state] ?? unknown;
  return (
    <StateMark tone={tone} title={title}>
      {word}
    </StateMark>
  );
}
