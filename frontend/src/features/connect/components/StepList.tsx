import type { ReactElement } from "react";
import { StateMark } from "@/components/StateMark";
import type { FirstSteps } from "@/lib/api/types";
import classes from "./StepList.module.css";

const STEPS: { of: keyof FirstSteps; what: string }[] = [
  { of: "credential", what: "A credential is made" },
  { of: "produced", what: "A first record is produced" },
  { of: "consumed", what: "A first record is consumed by a group" },
];

/** The first steps with a cluster, each with what the service knows of it. */
export function StepList({ steps }: { steps: FirstSteps }): ReactElement {
  return (
    <ol className={classes.root} aria-label="First steps">
      {STEPS.map(({ of, what }) => (
        <li key={of}>
          <span>{what}</span>
          <Outcome done={steps[of]} />
        </li>
      ))}
    </ol>
  );
}

function Outcome({ done }: { done: boolean | null }): ReactElement {
  if (done === null) {
    return (
      <StateMark tone="asleep" title="Seen once its brokers run">
        Not known
      </StateMark>
    );
  }
  return done ? (
    <StateMark tone="running">Done</StateMark>
  ) : (
    <StateMark tone="waking">To do</StateMark>
  );
}
