import type { ReactElement } from "react";
import { CopyButton } from "./CopyButton";
import classes from "./CopyText.module.css";

interface Props {
  value: string;
  what: string;
}

/** A name, address or id in monospace with a button that copies it. */
export function CopyText({ value, what }: Props): ReactElement {
  return (
    <span className={classes.root}>
      <code className={classes.text} title={value}>
        {value}
      </code>
      <CopyButton value={value} what={what} />
    </span>
  );
}
