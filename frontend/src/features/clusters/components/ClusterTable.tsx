import { Link } from "@tanstack/react-router";
import type { ReactElement } from "react";
import { CopyText } from "@/components/CopyText";
import { type Column, DataTable } from "@/components/DataTable";
import { Moment } from "@/components/Moment";
import { PhaseMark } from "@/components/PhaseMark";
import type { Cluster } from "@/lib/api/types";

/** The organization's clusters. */
export function ClusterTable({
  clusters,
}: {
  clusters: readonly Cluster[] | undefined;
}): ReactElement {
  return (
    <DataTable
      label="Clusters"
      columns={COLUMNS}
      rows={clusters}
      rowId={(cluster) => cluster.id}
      initialSort={[{ id: "name", desc: false }]}
    />
  );
}

const COLUMNS: Column<Cluster>[] = [
  {
    id: "name",
    header: "Name",
    sortBy: (cluster) => cluster.name,
    cell: ({ id, name }) => (
      <Link to="/clusters/$clusterId" params={{ clusterId: id }}>
        {name}
      </Link>
    ),
  },
  {
    id: "state",
    header: "State",
    width: 130,
    sortBy: (cluster) => cluster.status.phase,
    cell: (cluster) => <PhaseMark phase={cluster.status.phase} />,
  },
  {
    id: "since",
    header: "Since",
    width: 110,
    cell: (cluster) => <Moment at={cluster.status.since} />,
  },
  { id: "region", header: "Region", width: 120, cell: (cluster) => cluster.region },
  {
    id: "bootstrap",
    header: "Bootstrap servers",
    cell: (cluster) =>
      cluster.bootstrap_servers ? (
        <CopyText value={cluster.bootstrap_servers} what="the bootstrap address" />
      ) : (
        "–"
      ),
  },
  {
    id: "created",
    header: "Created",
    width: 110,
    sortBy: (cluster) => cluster.created_at,
    cell: (cluster) => <Moment at={cluster.created_at} />,
  },
];
