import { type ReactElement, useMemo } from "react";
import { type Column, DataTable } from "@/components/DataTable";
import { RowButton } from "@/components/GuardedButton";
import type { Limit } from "@/lib/api/types";
import { formatCount } from "@/lib/format/bytes";
import { useRefusal } from "@/lib/permissions";
import classes from "./LimitTable.module.css";

interface Props {
  limits: readonly Limit[] | undefined;
  onRequest: (limit: Limit) => void;
}

/** What is limited, how far it is used, and what happens there. */
export function LimitTable({ limits, onRequest }: Props): ReactElement {
  const refused = useRefusal("manage");
  const columns = useMemo(() => columnsOf(refused, onRequest), [refused, onRequest]);
  return (
    <DataTable
      label="Limits"
      columns={columns}
      rows={limits}
      rowId={(limit) => `${limit.scope} ${limit.name}`}
    />
  );
}

const FIXED = "This one is the same for everybody.";

function columnsOf(
  refused: string | undefined,
  onRequest: (limit: Limit) => void,
): Column<Limit>[] {
  return [
    {
      id: "name",
      header: "Limit",
      sortBy: (limit) => limit.name,
      cell: (limit) => limit.name.replaceAll("_", " "),
    },
    { id: "scope", header: "Of each", width: 110, cell: (limit) => limit.scope },
    {
      id: "used",
      header: "Used",
      align: "right",
      width: 100,
      cell: (limit) => (limit.used === null ? "–" : formatCount(limit.used)),
    },
    {
      id: "limit",
      header: "At most",
      align: "right",
      width: 160,
      cell: (limit) => `${formatCount(limit.limit)} ${limit.unit}`,
    },
    {
      id: "effect",
      header: "What happens there",
      cell: (limit) => <div className={classes.effect}>{limit.effect}</div>,
    },
    {
      id: "ask",
      header: "",
      align: "right",
      width: 110,
      cell: (limit) => (
        <RowButton
          refused={limit.raisable ? refused : FIXED}
          aria-label={`Ask for more: ${limit.name}`}
          onClick={() => {
            onRequest(limit);
          }}
        >
          Ask for more
        </RowButton>
      ),
    },
  ];
}
