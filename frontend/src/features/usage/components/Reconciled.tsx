import { Tooltip } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { type ReactElement, useMemo } from "react";
import { type Column, DataTable } from "@/components/DataTable";
import { Empty } from "@/components/Empty";
import { Listed } from "@/components/Listed";
import { Moment } from "@/components/Moment";
import { big } from "@/lib/format/whole";
import { Section } from "@/components/Section";
import { StateMark } from "@/components/StateMark";
import type { ReconciledDay } from "@/lib/api/types";
import { formatBytes, formatCount, formatNumber } from "@/lib/format/bytes";
import { reconciliationsQuery } from "../api/reconciliations";
import { clusterName, type Names } from "../names";
import { AGREEMENTS, difference, summaryOf } from "../reconciled";

interface Props {
  /** One cluster; without it, all of them. */
  clusterId: string | undefined;
  names: Names;
}

const LEAD =
  "Each night the bytes of a day's usage are compared with those of the log that holds the " +
  "records: two independent ways of counting.";

/** Days whose usage was compared with the log. */
export function Reconciled({ clusterId, names }: Props): ReactElement {
  const days = useQuery(reconciliationsQuery(clusterId));
  const columns = useMemo(() => columnsOf(names), [names]);
  return (
    <div id="compared">
      <Section title="Compared with the log" lead={LEAD}>
        <Listed
          query={days}
          what="The comparisons could not be read"
          empty={
            <Empty title="No day compared yet">
              A day is compared in the night after it, once all of its usage is published.
            </Empty>
          }
        >
          {(rows) => (
            <DataTable
              label="Compared with the log"
              columns={columns}
              rows={rows}
              rowId={(row) => row.id}
              initialSort={[{ id: "day", desc: true }]}
              shown={31}
            />
          )}
        </Listed>
      </Section>
    </div>
  );
}

/** The mark beside a page's title: what the comparisons say together. It leads to them. */
export function ReconciledMark({
  clusterId,
}: {
  clusterId: string | undefined;
}): ReactElement | null {
  const { data } = useQuery(reconciliationsQuery(clusterId));
  const summary = data && summaryOf(data);
  if (!summary) return null;
  const { word, tone } = AGREEMENTS[summary.agreement];
  const words = summary.agreement === "equal" ? "Equal to the log, to the byte" : word;
  return (
    <a href="#compared" aria-label={`${words}: show the comparisons`}>
      <StateMark tone={tone} title={`${formatNumber(summary.days, "day")} compared with the log`}>
        {words}
      </StateMark>
    </a>
  );
}

function Exact({ bytes }: { bytes: string }): ReactElement {
  return (
    <Tooltip label={formatNumber(bytes, "byte")}>
      <span>{formatBytes(bytes)}</span>
    </Tooltip>
  );
}

function columnsOf(names: Names): Column<ReconciledDay>[] {
  return [
    {
      id: "day",
      header: "Day, UTC",
      width: 120,
      sortBy: (row) => row.day,
      cell: (row) => row.day,
    },
    {
      id: "cluster",
      header: "Cluster",
      sortBy: (row) => clusterName(row.cluster_id, names),
      cell: (row) => clusterName(row.cluster_id, names),
    },
    {
      id: "agreement",
      header: "Agreement",
      width: 190,
      sortBy: (row) => row.agreement,
      cell: ({ agreement, reason }) => (
        <StateMark tone={AGREEMENTS[agreement].tone} title={reason}>
          {AGREEMENTS[agreement].word}
        </StateMark>
      ),
    },
    {
      id: "metered",
      header: "By usage",
      align: "right",
      width: 110,
      sortBy: (row) => big(row.metered_bytes),
      cell: (row) => <Exact bytes={row.metered_bytes} />,
    },
    {
      id: "logged",
      header: "By the log",
      align: "right",
      width: 110,
      sortBy: (row) => big(row.logged_bytes),
      cell: (row) => <Exact bytes={row.logged_bytes} />,
    },
    {
      id: "difference",
      header: "Difference, bytes",
      align: "right",
      width: 150,
      cell: (row) => (
        <span
          title={
            row.differing_partitions > 0
              ? `in ${formatNumber(row.differing_partitions, "partition")}`
              : undefined
          }
        >
          {difference(row)}
        </span>
      ),
    },
    {
      id: "unknown",
      header: "Not comparable",
      align: "right",
      width: 130,
      cell: ({ unknown_bytes: bytes, reason }) =>
        big(bytes) === 0n ? (
          "–"
        ) : (
          <span title={`${formatCount(bytes)} bytes. ${reason ?? ""}`}>{formatBytes(bytes)}</span>
        ),
    },
    {
      id: "compared",
      header: "Compared",
      width: 120,
      cell: (row) => <Moment at={row.compared_at} />,
    },
  ];
}
