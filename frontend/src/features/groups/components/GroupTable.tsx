import { Link } from "@tanstack/react-router";
import { type ReactElement, useMemo } from "react";
import { type Column, DataTable } from "@/components/DataTable";
import type { Group } from "@/lib/api/types";
import { formatLag, formatLagSeconds } from "@/lib/format/lag";
import { big } from "@/lib/format/whole";
import { GroupState } from "./GroupState";

interface Props {
  clusterId: string;
  groups: readonly Group[] | undefined;
}

/** The consumer groups with their lag. */
export function GroupTable({ clusterId, groups }: Props): ReactElement {
  const columns = useMemo(() => columnsOf(clusterId), [clusterId]);
  return (
    <DataTable
      label="Consumer groups"
      columns={columns}
      rows={groups}
      rowId={(group) => group.group}
      initialSort={[{ id: "group", desc: false }]}
    />
  );
}

function columnsOf(clusterId: string): Column<Group>[] {
  return [
    {
      id: "group",
      header: "Group",
      sortBy: (group) => group.group,
      cell: ({ group }) => (
        <Link
          to="/clusters/$clusterId/groups/$group"
          params={{ clusterId, group }}
          style={{ fontFamily: "var(--mantine-font-family-monospace)" }}
        >
          {group}
        </Link>
      ),
    },
    {
      id: "state",
      header: "State",
      width: 150,
      sortBy: (group) => group.state,
      cell: (group) => <GroupState state={group.state} />,
    },
    {
      id: "members",
      header: "Members",
      align: "right",
      width: 100,
      sortBy: (group) => group.members.length,
      cell: (group) => group.members.length,
    },
    {
      id: "lag",
      header: "Lag, records",
      align: "right",
      width: 130,
      sortBy: (group) => big(group.lag ?? -1),
      cell: (group) => formatLag(group.lag),
    },
    {
      id: "seconds",
      header: "Lag, time",
      align: "right",
      width: 130,
      sortBy: (group) => group.lag_seconds ?? -1,
      cell: (group) => formatLagSeconds(group.lag_seconds),
    },
  ];
}
