import type { ReactElement } from "react";
import { CopyButton } from "./CopyButton";
import classes from "./CodeBlock.module.css";

interface Props {
  code: string;
  /** The name of the file, or "Shell". It also names the copy button. */
  title: string;
}

/** A block of code with its title and a copy button. Long lines scroll, nothing wraps. */
export function CodeBlock({ code, title }: Props): ReactElement {
  return (
    <figure className={classes.root}>
      <figcaption className={classes.head}>
        <span>{title}</span>
        <CopyButton value={code} what={title} />
      </figcaption>
      {/* A region that scrolls must be reachable by keyboard. */}
      <pre className={classes.code} tabIndex={0} aria-label={title} data-testid={`code ${title}`}>
        {code}
      </pre>
    </figure>
  );
}
