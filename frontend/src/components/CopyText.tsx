import type { ReactElement } from "react";
import { legible } from "@/lib/format/legible";
import { CopyButton } from "./CopyButton";
import { Escaped } from "./Name";
import classes from "./CopyText.module.css";

interface Props {
  value: string;
  what: string;
}

/** A name, address or id in monospace with a button that copies it. */
export function CopyText({ value, what }: Props): ReactElement {
  return (
    <span className={classes.root}>
      <code className={classes.text} title={legible(value)}>
        <bdi>
          <Escaped text={value} />
        </bdi>
      </code>
      <CopyButton value={value} what={what} />
    </span>
  );
}
