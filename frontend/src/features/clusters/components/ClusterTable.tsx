import { Group } from "@mantine/core";
import { Link } from "@tanstack/react-router";
import { type ReactElement, useMemo } from "react";
import { CopyText } from "@/components/CopyText";
import { type Column, DataTable } from "@/components/DataTable";
import { Moment } from "@/components/Moment";
import { PhaseMark } from "@/components/PhaseMark";
import { StateMark } from "@/components/StateMark";
import type { Cluster } from "@/lib/api/types";
import { trafficLimitOf } from "../traffic";

interface Props {
  clusters: readonly Cluster[] | undefined;
  /** The names of projects by id; undefined where there is only one project. */
  projects: ReadonlyMap<string, string> | undefined;
}

/** The clusters of the organization. It has a column of projects where there are several. */
export function ClusterTable({ clusters, projects }: Props): ReactElement {
  const columns = useMemo(() => columnsOf(projects), [projects]);
  return (
    <DataTable
      label="Clusters"
      columns={columns}
      rows={clusters}
      rowId={(cluster) => cluster.id}
      initialSort={[{ id: "name", desc: false }]}
    />
  );
}

function columnsOf(projects: Props["projects"]): Column<Cluster>[] {
  const [name, ...rest] = COLUMNS;
  if (projects === undefined || name === undefined) return COLUMNS;
  const nameOf = ({ project_id: id }: Cluster): string => projects.get(id) ?? "–";
  return [
    name,
    { id: "project", header: "Project", width: 150, sortBy: nameOf, cell: nameOf },
    ...rest,
  ];
}

/** The phase, and beside it that traffic is refused or slowed down. */
function State({ cluster }: { cluster: Cluster }): ReactElement {
  const limit = trafficLimitOf(cluster);
  return (
    <Group gap="xs" wrap="nowrap">
      <PhaseMark phase={cluster.status.phase} />
      {limit && (
        <StateMark tone="suspended" title={limit.reason}>
          {limit.mark}
        </StateMark>
      )}
    </Group>
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
    width: 190,
    sortBy: (cluster) => cluster.status.phase,
    cell: (cluster) => <State cluster={cluster} />,
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
