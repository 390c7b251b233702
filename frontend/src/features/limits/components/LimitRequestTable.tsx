import type { ReactElement } from "react";
import { type Column, DataTable } from "@/components/DataTable";
import { Moment } from "@/components/Moment";
import type { Tone } from "@/components/Note";
import { StateMark } from "@/components/StateMark";
import type { LimitRequest } from "@/lib/api/types";
import { formatCount } from "@/lib/format/bytes";

const STATES: Record<LimitRequest["state"], { word: string; tone: Tone }> = {
  open: { word: "Waiting", tone: "waking" },
  granted: { word: "Granted", tone: "running" },
  refused: { word: "Refused", tone: "quiet" },
};

/** What was asked for, and what came of it. */
export function LimitRequestTable({
  requests,
}: {
  requests: readonly LimitRequest[] | undefined;
}): ReactElement {
  return (
    <DataTable
      label="Requests"
      columns={COLUMNS}
      rows={requests}
      rowId={(request) => request.id}
      initialSort={[{ id: "created", desc: true }]}
    />
  );
}

const COLUMNS: Column<LimitRequest>[] = [
  { id: "limit", header: "Limit", cell: (request) => request.limit.replaceAll("_", " ") },
  {
    id: "wanted",
    header: "Wanted",
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
