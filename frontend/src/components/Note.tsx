import type { ReactElement, ReactNode } from "react";
import classes from "./Note.module.css";

export type Tone = "running" | "waking" | "asleep" | "suspended" | "failed" | "quiet";

interface Props {
  tone: Tone;
  children: ReactNode;
  /** A button at the end of the note. */
  action?: ReactNode;
}

/** A box with a message about a state, in that state's colour. */
export function Note({ tone, children, action }: Props): ReactElement {
  return (
    <div className={classes.root} data-tone={tone}>
      <div>{children}</div>
      {action}
    </div>
  );
}

/** A line in a quieter colour under the first line of a note. */
export function NoteMore({ children }: { children: ReactNode }): ReactElement {
  return <div className={classes.more}>{children}</div>;
}
