import { type ReactElement, useMemo } from "react";
import { type Column, DataTable } from "@/components/DataTable";
import { RowButton } from "@/components/GuardedButton";
import type { Limit } from "@/lib/api/types";
import { formatCount } from "@/lib/format/bytes";
import { useRefusal } from "@/lib/permissions";
import { formatLimit, limitLabel, NEAR, usedShare } from "../words";
import classes from "./LimitTable.module.css";

interface Props {
  limits: readonly Limit[] | undefined;
  /** Whether the limits are those of one cluster. */
  ofCluster: boolean;
  onRequest: (limit: Limit) => void;
}

/** The limits: how much is used, and what happens at the limit. */
export function LimitTable({ limits, ofCluster, onRequest }: Props): ReactElement {
  const refused = useRefusal("manage");
  const columns = useMemo(
    () => columnsOf(refused, onRequest).filter(({ id }) => !ofCluster || id !== "scope"),
    [refused, onRequest, ofCluster],
  );
  return (
    <DataTable
      label="Limits"
      columns={columns}
      rows={limits}
      rowId={(limit) => `${limit.scope} ${limit.name}`}
    />
  );
}

const FIXED = "This limit is the same for everybody.";

function Used({ limit }: { limit: Limit }): ReactElement {
  const share = usedShare(limit);
  if (limit.used === null || share === null) return <span title="Not counted">–</span>;
  return (
    <span className={classes.used}>
      {formatCount(limit.used)}
      <span className={classes.track} aria-hidden="true">
        <span
          className={classes.fill}
          data-near={share >= NEAR}
          style={{ width: `${String(share * 100)}%` }}
        />
      </span>
    </span>
  );
}

function columnsOf(
  refused: string | undefined,
  onRequest: (limit: Limit) => void,
): Column<Limit>[] {
  return [
    {
      id: "name",
      header: "Limit",
      sortBy: (limit) => limit.name,
      cell: (limit) => limitLabel(limit.name),
    },
    { id: "scope", header: "Of each", width: 110, cell: (limit) => limit.scope },
    {
      id: "used",
      header: "Used",
      align: "right",
      width: 150,
      sortBy: (limit) => usedShare(limit) ?? -1,
      cell: (limit) => <Used limit={limit} />,
    },
    {
      id: "limit",
      header: "At most",
      align: "right",
      width: 160,
      cell: (limit) => formatLimit(limit.limit, limit.unit),
    },
    {
      id: "effect",
      header: "What happens there",
      isSentence: true,
      cell: (limit) => limit.effect,
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
