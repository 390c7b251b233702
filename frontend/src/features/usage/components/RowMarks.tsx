import type { ReactElement } from "react";
import type { UsageItem } from "@/lib/api/types";
import { partOf, partWords } from "../sums";
import classes from "./RowMarks.module.css";

/** Returns the reason why a row is not billed, as a sentence. */
function whyOf(row: UsageItem): string {
  const words = partWords(partOf(row));
  return `${words.charAt(0).toUpperCase()}${words.slice(1)}.`;
}

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
        <span className={classes.mark} title={`Never part of an invoice. ${whyOf(row)}`}>
          Not billed
        </span>
      )}
    </span>
  );
}
