import type { ReactElement } from "react";
import { StateMark } from "@/components/StateMark";
import type { Tone } from "@/components/Note";
import type { BrokerPhase, Cluster } from "@/lib/api/types";
import classes from "./BrokerList.module.css";

const MARKS: Record<BrokerPhase, [Tone, string]> = {
  serving: ["running", "Serving"],
  starting: ["waking", "Starting"],
  stopped: ["asleep", "Stopped"],
};

/** The brokers of a cluster by their node ids, each with what it does. */
export function BrokerList({ brokers }: Pick<Cluster["status"], "brokers">): ReactElement {
  return (
    <ul className={classes.brokers}>
      {brokers.map(({ slot, phase }) => {
        const [tone, word] = MARKS[phase];
        return (
          <li key={slot}>
            <span>Broker {slot}</span>
            <StateMark tone={tone}>{word}</StateMark>
          </li>
        );
      })}
    </ul>
  );
}
