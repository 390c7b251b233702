import type { ReactElement } from "react";
import classes from "./Logo.module.css";

/** Freshet's mark and name. */
export function Logo(): ReactElement {
  return (
    <span className={classes.root}>
      <svg viewBox="0 0 32 32" width="22" height="22" aria-hidden="true">
        <rect width="32" height="32" rx="7" fill="#0b6e8f" />
        <g fill="none" stroke="#fff" strokeWidth="2.6" strokeLinecap="round">
          <path d="M6 11.5c3.3-3 6.7-3 10 0s6.7 3 10 0" />
          <path d="M6 17.5c3.3-3 6.7-3 10 0s6.7 3 10 0" opacity=".75" />
          <path d="M6 23.5c3.3-3 6.7-3 10 0s6.7 3 10 0" opacity=".5" />
        </g>
      </svg>
      <span className={classes.name}>Freshet</span>
    </span>
  );
}
