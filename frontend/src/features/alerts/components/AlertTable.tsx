import { Button } from "@mantine/core";
import { Link } from "@tanstack/react-router";
import { type ReactElement, useMemo } from "react";
import type { Column } from "@/components/DataTable";
import { Moment } from "@/components/Moment";
import { RemovableTable } from "@/components/RemovableTable";
import type { Alert } from "@/lib/api/types";
import { useRemoveAlert } from "../api/alerts";
import { conditionWords, formatFigure, shownStateOf, subjectOf } from "../figures";
import { AlertMark } from "./AlertMark";

interface Props {
  alerts: readonly Alert[] | undefined;
  /** The names of clusters by id; undefined on a page of one cluster. */
  clusters?: ReadonlyMap<string, string>;
  /** Gives why the person may not change alerts of a cluster; undefined where they may. */
  refusal: (clusterId: string) => string | undefined;
}

/** The alerts with their states, and buttons to change and remove them. */
export function AlertTable({ alerts, clusters, refusal }: Props): ReactElement {
  const columns = useMemo(() => columnsOf(clusters), [clusters]);
  return (
    <RemovableTable
      label="Alerts"
      columns={columns}
      rows={alerts}
      initialSort={[{ id: "state", desc: false }]}
      actionsWidth={150}
      actions={(alert) => <Look alert={alert} refused={refusal(alert.cluster_id)} />}
      removal={{
        mutation: useRemoveAlert(),
        name: (alert) => alert.name,
        label: "Remove",
        title: "Remove the alert",
        done: "is removed",
        refused: undefined,
        keptBecause: (alert) => refusal(alert.cluster_id),
        effect: () =>
          "No mail is sent about this figure any more, not even that it is over if it fires now. " +
          "A new alert can be made at any time.",
      }}
    />
  );
}

interface LookProps {
  alert: Alert;
  refused: string | undefined;
}

function Look({ alert, refused }: LookProps): ReactElement {
  const verb = refused ? "Look at" : "Edit";
  return (
    <Button
      variant="subtle"
      color="gray"
      size="compact-xs"
      aria-label={`${verb} ${alert.name}`}
      renderRoot={(props) => <Link to="/alerts" search={{ panel: alert.id }} {...props} />}
    >
      {verb}
    </Button>
  );
}

const RANKS = { firing: 0, pending: 1, unknown: 2, new: 3, ok: 4 } as const;

function columnsOf(clusters: Props["clusters"]): Column<Alert>[] {
  const cluster: Column<Alert> = {
    id: "cluster",
    header: "Cluster",
    sortBy: (alert) => clusters?.get(alert.cluster_id) ?? alert.cluster_id,
    cell: (alert) => (
      <Link to="/clusters/$clusterId" params={{ clusterId: alert.cluster_id }}>
        {clusters?.get(alert.cluster_id) ?? alert.cluster_id}
      </Link>
    ),
  };
  return [
    {
      id: "state",
      header: "State",
      width: 110,
      sortBy: (alert) => `${String(RANKS[shownStateOf(alert)])} ${alert.name}`,
      cell: (alert) => <AlertMark alert={alert} />,
    },
    {
      id: "since",
      header: "Since",
      width: 110,
      sortBy: (alert) => alert.since,
      cell: (alert) => <Moment at={alert.since} />,
    },
    { id: "name", header: "Name", sortBy: (alert) => alert.name, cell: (alert) => alert.name },
    ...(clusters ? [cluster] : []),
    { id: "condition", header: "Fires when", cell: conditionWords },
    {
      id: "value",
      header: "Now",
      align: "right",
      cell: (alert) => (alert.value === null ? "–" : formatFigure(alert.kind, alert.value)),
    },
    {
      id: "subject",
      header: "Of",
      sortBy: (alert) => subjectOf(alert).join(""),
      cell: (alert) => {
        const names = subjectOf(alert);
        return names.length > 0 ? names.map((name) => <span key={name}>{name}</span>) : "–";
      },
    },
    {
      id: "fired",
      header: "Last fired",
      width: 110,
      sortBy: (alert) => alert.fired_at ?? "",
      cell: (alert) => (alert.fired_at ? <Moment at={alert.fired_at} /> : "never"),
    },
  ];
}
