import { Skeleton } from "@mantine/core";
import type { ReactElement, ReactNode } from "react";
import classes from "./Tile.module.css";

interface Props {
  label: string;
  /** Undefined while it loads. */
  value: ReactNode | undefined;
  note?: ReactNode;
}

/** A tile with one figure and its name. */
export function Tile({ label, value, note }: Props): ReactElement {
  return (
    <div className={classes.root}>
      <div className={classes.label}>{label}</div>
      <div className={classes.value}>
        {value === undefined ? <Skeleton height={18} width={64} mt={5} /> : value}
      </div>
      {note && <div className={classes.note}>{note}</div>}
    </div>
  );
}

/** A row of tiles that wraps. */
export function Tiles({ children }: { children: ReactNode }): ReactElement {
  return <div className={classes.row}>{children}</div>;
}
