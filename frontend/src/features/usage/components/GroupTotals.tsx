import { Link } from "@tanstack/react-router";
import { type ReactElement, useMemo } from "react";
import { type Column, DataTable } from "@/components/DataTable";
import { Quantity } from "@/components/Quantity";
import type { UsageItem } from "@/lib/api/types";
import { meterName, METERS } from "@/lib/format/meters";
import type { UsageSeries } from "../api/usage";
import { groupNames, type Names } from "../names";
import { passedMinutes } from "../pictures";
import { type GroupBy, groupKey, groupOrder, NOT_BILLED, totalOf } from "../series";

interface Props {
  usage: UsageSeries | undefined;
  by: GroupBy;
  names: Names;
}

interface Total {
  key: string;
  label: string;
  items: UsageItem[];
}

const TITLES: Record<GroupBy, string> = {
  meter: "All",
  cluster: "Cluster",
  topic: "Topic",
  principal: "Credential",
};

/** The table of all groups with all of their meters. The charts show only the largest groups. */
export function GroupTotals({ usage, by, names }: Props): ReactElement {
  const totals = useMemo(() => usage && totalsOf(usage, by, names), [usage, by, names]);
  const minutes = usage ? passedMinutes(usage.range, usage.readAt) : 1;
  const columns = useMemo(() => columnsOf(by, minutes), [by, minutes]);
  return (
    <DataTable
      label={`Usage by ${TITLES[by].toLowerCase()}`}
      columns={columns}
      rows={totals}
      rowId={(total) => total.key}
    />
  );
}

function totalsOf(usage: UsageSeries, by: GroupBy, names: Names): Total[] {
  const nameOf = groupNames(usage.items, by, names);
  const groups = new Map<string, UsageItem[]>();
  for (const item of usage.items) {
    const key = groupKey(item, by);
    groups.set(key, [...(groups.get(key) ?? []), item]);
  }
  return groupOrder(usage.items, by).map((key) => ({
    key,
    label: nameOf(key),
    items: groups.get(key) ?? [],
  }));
}

/** A group's name, as a link to the usage of this group alone. */
function Narrow({ total, by }: { total: Total; by: GroupBy }): ReactElement {
  const { key, label, items } = total;
  const first = items[0];
  if (key === NOT_BILLED) {
    return (
      <Link
        from="/usage"
        to="/usage"
        search={(before) => ({ ...before, billed: false })}
        hash="rows"
      >
        {label}
      </Link>
    );
  }
  if (!first) return <>{label}</>;
  const cluster = first.cluster_id ?? undefined;
  // What belongs to no topic is one group for all clusters.
  const noTopic = { topic: "", by: "principal" as const };
  const only = {
    meter: {},
    cluster: { cluster, by: "topic" as const },
    topic: key ? { ...noTopic, cluster, topic: first.topic_id ?? "" } : noTopic,
    principal: { principal: first.principal ?? "", by: "topic" as const },
  }[by];
  return (
    <Link from="/usage" to="/usage" search={(before) => ({ ...before, ...only })}>
      {label}
    </Link>
  );
}

function columnsOf(by: GroupBy, minutes: number): Column<Total>[] {
  const title = TITLES[by];
  return [
    {
      id: "group",
      header: title,
      sortBy: ({ label }) => label,
      cell: (total) => <Narrow total={total} by={by} />,
    },
    ...METERS.map((meter): Column<Total> => ({
      id: meter,
      header: meterName(meter),
      align: "right",
      width: 120,
      sortBy: ({ items }) => totalOf(items, meter),
      cell: ({ items }) => (
        <Quantity meter={meter} quantity={totalOf(items, meter)} minutes={minutes} />
      ),
    })),
  ];
}
