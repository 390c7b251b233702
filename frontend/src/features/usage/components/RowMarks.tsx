import type { ReactElement } from "react";
import type { UsageItem } from "@/lib/api/types";
import classes from "./RowMarks.module.css";

/** Marks of a row: whether it may still change, and whether it is not billed. */
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
