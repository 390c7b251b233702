import type { ReactElement } from "react";
import type { Phase } from "@/lib/api/types";
import classes from "./PhaseMark.module.css";

const WORDS: Record<Phase, string> = {
  provisioning: "Starting",
  running: "Running",
  asleep: "Asleep",
  suspended: "Suspended",
  deleting: "Deleting",
  deleted: "Deleted",
  failed: "Failed",
  unknown: "Unknown",
};

/** Each phase has a shape of its own, so that its meaning does not depend on the colour. */
const SHAPES: Record<Phase, ReactElement> = {
  provisioning: (
    <>
      <circle cx="6" cy="6" r="4.5" fill="none" stroke="currentColor" strokeWidth="1.6" />
      <path d="M6 1.5a4.5 4.5 0 0 1 0 9z" />
    </>
  ),
  running: <circle cx="6" cy="6" r="4.5" />,
  asleep: <path d="M7.6 1.300a4.9 4.9 0 1 0 3.1 6.400A4 4 0 0 1 7.6 1.300z" />,
  suspended: <path d="M2.5 1.500h2.600v9H2.500zM6.9 1.500h2.600v9H6.900z" />,
  deleting: <path d="M1.5 4.900h9v2.200h-9z" />,
  deleted: <path d="M1.5 4.900h9v2.200h-9z" />,
  failed: <path d="M6 .9l5.4 9.700H.6z" />,
  unknown: (
    <circle
      cx="6"
      cy="6"
      r="4"
      fill="none"
      stroke="currentColor"
      strokeWidth="1.6"
      strokeDasharray="2 1.6"
    />
  ),
};

const TONES: Record<Phase, string | undefined> = {
  provisioning: classes.waking,
  running: classes.running,
  asleep: classes.asleep,
  suspended: classes.suspended,
  deleting: classes.quiet,
  deleted: classes.quiet,
  failed: classes.failed,
  unknown: classes.quiet,
};

interface Props {
  phase: Phase;
  large?: boolean;
}

/** Shows a cluster's phase as word, shape and colour. */
export function PhaseMark({ phase, large = false }: Props): ReactElement {
  const tone = TONES[phase] ?? classes.quiet;
  return (
    <span className={`${classes.mark ?? ""} ${tone ?? ""}`} data-large={large || undefined}>
      <svg viewBox="0 0 12 12" aria-hidden="true" fill="currentColor">
        {SHAPES[phase] ?? SHAPES.unknown}
      </svg>
      {WORDS[phase] ?? phase}
    </span>
  );
}
