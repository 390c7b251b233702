import type { ReactElement } from "react";
import type { UsageItem } from "@/lib/api/types";
import classes from "./RowMarks.module.css";

/** What sets a row apart: it may still change, or it costs nothing. */
export function RowMarks({ row }: { row: UsageItem }): ReactElement {
  return (
    <span className={classes.root}>
      {row.provisional && (
        <span className={classes.mark} data-kind="provisional" title="The roll-up replaces it">
          Provisional
        </span>
      )}
      {!row.billed && (
        <span className={classes.mark} title="Counted and shown, and never part of an invoice">
          Not billed
        </span>
      )}
    </span>
  );
}
