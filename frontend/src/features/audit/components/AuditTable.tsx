import { Link } from "@tanstack/react-router";
import type { ReactElement } from "react";
import { type Column, DataTable } from "@/components/DataTable";
import { Moment } from "@/components/Moment";
import type { AuditEntry } from "@/lib/api/types";
import { legible } from "@/lib/format/legible";
import { detailWords } from "../changes";
import { actionWords, kindWords } from "../filter";
import classes from "./AuditTable.module.css";

/** The entries of the log. A click opens an entry in the side panel. */
export function AuditTable({
  entries,
}: {
  entries: readonly AuditEntry[] | undefined;
}): ReactElement {
  return (
    <DataTable label="Audit log" columns={COLUMNS} rows={entries} rowId={(entry) => entry.id} />
  );
}

const COLUMNS: Column<AuditEntry>[] = [
  {
    id: "time",
    header: "Time",
    width: 110,
    cell: (entry) => <Moment at={entry.created_at} />,
  },
  {
    id: "action",
    header: "Action",
    width: 220,
    cell: (entry) => (
      <Link to="." search={(before) => ({ ...before, panel: entry.id })}>
        {actionWords(entry.action)}
      </Link>
    ),
  },
  {
    id: "actor",
    header: "By",
    width: 260,
    cell: ({ actor }) => (
      <>
        <span className={classes.name}>{actor.name}</span>{" "}
        <span className={classes.quiet}>{kindWords(actor.kind)}</span>
      </>
    ),
  },
  {
    id: "target",
    header: "Target",
    cell: ({ target }) => (
      <>
        <span className={classes.quiet}>{target.type.replaceAll("_", " ")}</span>{" "}
        <code className={classes.mono} title={target.id}>
          {target.name}
        </code>
        {target.cluster && target.type !== "cluster" && (
          <span className={classes.quiet}> in {target.cluster}</span>
        )}
      </>
    ),
  },
  {
    id: "detail",
    header: "What",
    cell: (entry) => {
      const words = detailWords(entry.detail);
      return (
        <div className={classes.detail} title={legible(words.join("\n"), { lines: true })}>
          {words.map((change, at) => (
            <span key={at}>{at < words.length - 1 ? `${change}, ` : change}</span>
          ))}
        </div>
      );
    },
  },
];
