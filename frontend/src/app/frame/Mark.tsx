import { Link } from "@tanstack/react-router";
import type { ReactElement } from "react";
import { useFreshness } from "@/lib/api/freshness";
import classes from "./TopLine.module.css";

interface Props {
  to: "/incidents" | "/alerts";
  count: number;
  /** The noun of what is counted, such as "incident". Its plural ends in s. */
  noun: string;
}

/** A count in the line above every page; it shows nothing where the count is 0. */
export function Mark({ to, count, noun }: Props): ReactElement {
  const { stale } = useFreshness();
  return (
    <span role="status">
      {count > 0 && (
        <Link
          to={to}
          className={classes.mark}
          data-stale={stale !== null || undefined}
          title={count === 1 ? noun : `${noun}s`}
        >
          {count} <span className={classes.noun}>{count === 1 ? noun : `${noun}s`}</span>
        </Link>
      )}
    </span>
  );
}
