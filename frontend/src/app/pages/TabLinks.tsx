import type { ReactElement, ReactNode } from "react";
import classes from "./TabLinks.module.css";

/** A line of links that look like tabs. Every tab has an address of its own. */
export function TabLinks({
  label,
  children,
}: {
  label: string;
  children: ReactNode;
}): ReactElement {
  return (
    <nav aria-label={label} className={classes.root}>
      {children}
    </nav>
  );
}

/**
 * Returns the props of a `Link` in the line. `exact`: for the tab whose address begins all others.
 */
export function tabProps(exact = false): {
  className: string | undefined;
  activeOptions: { exact: boolean; includeSearch: boolean };
  activeProps: { "aria-current": "page" };
} {
  return {
    className: classes.tab,
    activeOptions: { exact, includeSearch: false },
    activeProps: { "aria-current": "page" },
  };
}
