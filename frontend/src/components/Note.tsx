import type { ReactElement, ReactNode } from "react";
import classes from "./Note.module.css";

export type Tone = "running" | "waking" | "asleep" | "suspended" | "failed" | "quiet";

interface Props {
  tone: Tone;
  children: ReactNode;
  /** A button at its end. */
  action?: ReactNode;
}

/** A box that says something about a state, in that state's colour. */
export function Note({ tone, children, action }: Props): ReactElement {
  return (
    <div className={classes.root} data-tone={tone}>
      <div>{children}</div>
      {action}
    </div>
  );
}

/** The quieter line under a note's first. */
export function NoteMore({ children }: { children: ReactNode }): ReactElement {
  return <div className={classes.more}>{children}</div>;
}
