import { type ReactElement, useMemo } from "react";
import { type Column, DataTable } from "@/components/DataTable";
import { Moment } from "@/components/Moment";
import type { Tone } from "@/components/Note";
import { StateMark } from "@/components/StateMark";
import type { LimitRequest } from "@/lib/api/types";
import { formatCount } from "@/lib/format/bytes";
import { limitLabel } from "../words";

const STATES: Record<LimitRequest["state"], { word: string; tone: Tone }> = {
  open: { word: "Waiting", tone: "waking" },
  granted: { word: "Granted", tone: "running" },
  refused: { word: "Refused", tone: "quiet" },
};

interface Props {
  requests: readonly LimitRequest[] | undefined;
  /** The names of clusters by id. */
  clusters: ReadonlyMap<string, string>;
}

/** The requests for higher limits, with their answers. */
export function LimitRequestTable({ requests, clusters }: Props): ReactElement {
  const columns = useMemo(() => columnsOf(clusters), [clusters]);
  return (
    <DataTable
      label="Requests"
      columns={columns}
      rows={requests}
      rowId={(request) => request.id}
      initialSort={[{ id: "created", desc: true }]}
    />
  );
}

function columnsOf(clusters: Props["clusters"]): Column<LimitRequest>[] {
  return [
    { id: "limit", header: "Limit", cell: (request) => limitLabel(request.limit) },
    {
      id: "cluster",
      header: "Of",
      cell: ({ cluster_id: id }) =>
        id === null ? "the organization" : (clusters.get(id) ?? "a cluster that is gone"),
    },
    {
      id: "wanted",
      header: "Requested",
      align: "right",
      width: 110,
      cell: (request) => formatCount(request.wanted),
    },
    {
      id: "state",
      header: "State",
      width: 120,
      cell: ({ state }) => <StateMark tone={STATES[state].tone}>{STATES[state].word}</StateMark>,
    },
    { id: "answer", header: "Answer", cell: (request) => request.answer || "–" },
    {
      id: "created",
      header: "Asked",
      width: 110,
      sortBy: (request) => request.created_at,
      cell: (request) => <Moment at={request.created_at} />,
    },
  ];
}
