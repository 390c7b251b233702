import type { ReactElement, ReactNode } from "react";
import classes from "./Empty.module.css";

interface Props {
  title: string;
  /** What the list will show, and what it is for. */
  children: ReactNode;
  /** The first step: a button, or the exact command. */
  action?: ReactNode;
}

/** Shown in place of an empty list. */
export function Empty({ title, children, action }: Props): ReactElement {
  return (
    <div className={classes.root}>
      <h3 className={classes.title}>{title}</h3>
      <div className={classes.text} data-prose>
        {children}
      </div>
      {action && <div className={classes.action}>{action}</div>}
    </div>
  );
}
