import { Button, Group, Text } from "@mantine/core";
import { Link } from "@tanstack/react-router";
import { type ReactElement, useMemo, useState } from "react";
import { type Column, DataTable } from "@/components/DataTable";
import { Quantity } from "@/components/Quantity";
import { ITEMS_MAX } from "@/lib/api/pages";
import type { UsageItem } from "@/lib/api/types";
import { formatCount } from "@/lib/format/bytes";
import { meterMeaning, meterName } from "@/lib/format/meters";
import { big } from "@/lib/format/whole";
import { formatWindow } from "@/lib/format/utc";
import { clusterName, type Names, principalName } from "../names";
import { RowMarks } from "./RowMarks";

interface Props {
  /** The rows, newest first; undefined while they load. */
  rows: readonly UsageItem[] | undefined;
  names: Names;
}

const STEP = 100;

/** The usage rows. A click on a published one opens what it was made from. */
export function UsageRows({ rows, names }: Props): ReactElement {
  const [shown, setShown] = useState(STEP);
  const columns = useMemo(() => columnsOf(names), [names]);
  const rest = (rows?.length ?? 0) - shown;
  return (
    <>
      <DataTable label="Usage rows" columns={columns} rows={rows} rowId={rowKey} shown={shown} />
      {rest > 0 && (
        <Group justify="center" mt="sm">
          <Button
            variant="default"
            onClick={() => {
              setShown(shown + STEP);
            }}
          >
            Show {formatCount(Math.min(STEP, rest))} more of {formatCount(rest)}
          </Button>
        </Group>
      )}
      {rest <= 0 && (rows?.length ?? 0) > ITEMS_MAX && (
        <Text size="sm" c="dimmed" mt="sm">
          There are more rows than {formatCount(ITEMS_MAX)} in this time, and the newest are not
          among these. Choose a shorter time or one cluster.
        </Text>
      )}
    </>
  );
}

/** Returns the key of a row. Its id alone is none: fresh rows have none, hours their day's. */
function rowKey(row: UsageItem): string {
  const { id, meter, window_start, cluster_id, topic_id, principal } = row;
  return [id, meter, window_start, cluster_id, topic_id, principal, row.billed].join(" ");
}

export function minutesOf({ window_start, window_end }: UsageItem): number {
  return (Date.parse(window_end) - Date.parse(window_start)) / 60_000;
}

const mono = { fontFamily: "var(--mantine-font-family-monospace)" };

function columnsOf(names: Names): Column<UsageItem>[] {
  return [
    {
      id: "window",
      header: "Window, UTC",
      width: 190,
      sortBy: (row) => row.window_start,
      cell: (row) => {
        const words = formatWindow(new Date(row.window_start), new Date(row.window_end));
        const { id } = row;
        if (id === null || row.provisional) return words;
        return (
          <Link
            from="/usage"
            to="/usage"
            search={(before) => ({ ...before, panel: id })}
            resetScroll={false}
            title="What this row was made of"
          >
            {words}
          </Link>
        );
      },
    },
    {
      id: "meter",
      header: "Meter",
      width: 110,
      sortBy: (row) => row.meter,
      cell: (row) => <span title={meterMeaning(row.meter)}>{meterName(row.meter)}</span>,
    },
    {
      id: "cluster",
      header: "Cluster",
      sortBy: (row) => clusterName(row.cluster_id, names),
      cell: (row) => clusterName(row.cluster_id, names),
    },
    {
      id: "topic",
      header: "Topic",
      sortBy: (row) => row.topic ?? row.topic_id ?? "",
      cell: (row) => (row.topic_id ? <span style={mono}>{row.topic ?? row.topic_id}</span> : "–"),
    },
    {
      id: "credential",
      header: "Credential",
      sortBy: (row) => principalName(row.principal, names, row.principal_name),
      cell: (row) => (
        <span title={row.principal ?? undefined}>
          {principalName(row.principal, names, row.principal_name)}
        </span>
      ),
    },
    {
      id: "quantity",
      header: "Quantity",
      align: "right",
      width: 110,
      sortBy: (row) => big(row.quantity),
      cell: (row) => (
        <Quantity meter={row.meter} quantity={row.quantity} minutes={minutesOf(row)} />
      ),
    },
    { id: "marks", header: "", width: 150, cell: (row) => <RowMarks row={row} /> },
  ];
}
