import type { ReactElement } from "react";
import type { Tone } from "./Note";
import classes from "./StateMark.module.css";

interface Props {
  tone: Tone;
  /** The meaning, on hover. */
  title?: string;
  children: string;
}

/** Shows a state as word, shape and colour. Each tone has a shape of its own. */
export function StateMark({ tone, title, children }: Props): ReactElement {
  return (
    <span className={classes.root} data-tone={tone} title={title}>
      <span className={classes.shape} aria-hidden="true" />
      {children}
    </span>
  );
}
