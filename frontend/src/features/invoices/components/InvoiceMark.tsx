import type { ReactElement } from "react";
import type { InvoiceState } from "@/lib/api/types";
import classes from "./InvoiceMark.module.css";

const MEANINGS: Record<InvoiceState, { word: string; title: string }> = {
  draft: { word: "Draft", title: "It has no number yet and may still change." },
  issued: { word: "Issued", title: "It has a number and never changes." },
  void: { word: "Void", title: "It was withdrawn. Its number stays taken." },
};

/** An invoice's state as word, shape and colour. */
export function InvoiceMark({ state }: { state: InvoiceState }): ReactElement {
  const { word, title } = MEANINGS[state] ?? { word: state, title: state };
  return (
    <span className={classes.root} data-state={state} title={title}>
      <span className={classes.shape} aria-hidden="true" />
      {word}
    </span>
  );
}
