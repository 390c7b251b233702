import type { ReactElement, ReactNode } from "react";
import { Logo } from "@/components/Logo";
import classes from "./EntryCard.module.css";

interface Props {
  title: string;
  lead: ReactNode;
  children: ReactNode;
  foot?: ReactNode;
}

/** The frame of the pages before sign-in. */
export function EntryCard({ title, lead, children, foot }: Props): ReactElement {
  return (
    <main className={classes.page}>
      <div className={classes.column}>
        <Logo />
        <div className={classes.card}>
          <h1 className={classes.title}>{title}</h1>
          <p className={classes.lead}>{lead}</p>
          {children}
        </div>
        {foot && <p className={classes.foot}>{foot}</p>}
      </div>
    </main>
  );
}
