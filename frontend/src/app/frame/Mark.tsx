import { Link } from "@tanstack/react-router";
import type { ReactElement } from "react";
import classes from "./TopLine.module.css";

interface Props {
  to: "/incidents" | "/alerts";
  count: number;
  /** What is counted: "incident". Its plural ends in s. */
  noun: string;
}

/** In the line above every page while something is wrong; otherwise nothing. */
export function Mark({ to, count, noun }: Props): ReactElement {
  return (
    <span role="status">
      {count > 0 && (
        <Link to={to} className={classes.mark} title={count === 1 ? noun : `${noun}s`}>
          {count} <span className={classes.noun}>{count === 1 ? noun : `${noun}s`}</span>
        </Link>
      )}
    </span>
  );
}
