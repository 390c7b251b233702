import type { ReactElement, ReactNode } from "react";
import classes from "./Section.module.css";

interface Props {
  title: string;
  lead?: ReactNode;
  actions?: ReactNode;
  children: ReactNode;
}

/** A titled part of a page. */
export function Section({ title, lead, actions, children }: Props): ReactElement {
  return (
    <section className={classes.root} aria-label={title}>
      <div className={classes.head}>
        <div>
          <h2 className={classes.title}>{title}</h2>
          {lead && <p className={classes.lead}>{lead}</p>}
        </div>
        {actions}
      </div>
      {children}
    </section>
  );
}
