import type { ReactElement, ReactNode } from "react";
import { legibly } from "./legibly";
import classes from "./PageHead.module.css";

interface Props {
  title: ReactNode;
  /** One line under the title. */
  lead?: ReactNode;
  actions?: ReactNode;
}

/** The head of a page: its title, what it is about, what can be done. */
export function PageHead({ title, lead, actions }: Props): ReactElement {
  return (
    <header className={classes.root}>
      <div className={classes.words}>
        <h1 className={classes.title}>{legibly(title)}</h1>
        {lead && <div className={classes.lead}>{lead}</div>}
      </div>
      {actions && <div className={classes.actions}>{actions}</div>}
    </header>
  );
}
