import type { ReactElement, ReactNode } from "react";
import { Escaped } from "./Name";
import classes from "./Facts.module.css";

/** The values of one item: names at the left, values at the right. */
export function Facts({ items }: { items: readonly [string, ReactNode][] }): ReactElement {
  return (
    <dl className={classes.root}>
      {items.map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{typeof value === "string" ? <Escaped text={value} /> : value}</dd>
        </div>
      ))}
    </dl>
  );
}
