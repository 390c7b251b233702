import { Link } from "@tanstack/react-router";
import { type ReactElement, useMemo } from "react";
import { type Column, DataTable } from "@/components/DataTable";
import type { Costs, Price } from "@/lib/api/types";
import { exactQuantity, meterName } from "@/lib/format/meters";
import { formatMoney } from "@/lib/format/money";
import { monthSpan } from "@/lib/format/utc";
import { byCluster, type ClusterCost } from "../clusters";

interface Props {
  costs: Costs | undefined;
  prices: readonly Price[] | undefined;
}

/** The cost of each cluster by meter. Every amount links to its usage rows. */
export function CostTable({ costs, prices }: Props): ReactElement {
  const rows = useMemo(() => costs && byCluster(costs.lines), [costs]);
  const columns = useMemo(
    () => columnsOf(prices ?? [], costs?.currency ?? "USD", costs?.month ?? ""),
    [prices, costs],
  );
  return (
    <DataTable
      label="Cost by cluster"
      columns={columns}
      rows={prices && rows}
      rowId={(row) => row.id}
      initialSort={[{ id: "total", desc: true }]}
    />
  );
}

function columnsOf(
  prices: readonly Price[],
  currency: string,
  month: string,
): Column<ClusterCost>[] {
  const sum = (row: ClusterCost, meter: string): number =>
    row.lines.reduce((all, line) => (line.meter === meter ? all + line.amount_minor : all), 0);
  return [
    {
      id: "cluster",
      header: "Cluster",
      sortBy: (row) => row.name,
      cell: (row) => (
        <Link to="/usage" search={{ ...monthSpan(month), cluster: row.id }}>
          {row.name}
        </Link>
      ),
    },
    ...prices.map(({ meter }): Column<ClusterCost> => ({
      id: meter,
      header: meterName(meter),
      align: "right",
      width: 120,
      sortBy: (row) => sum(row, meter),
      cell: (row) => {
        const line = row.lines.find((one) => one.meter === meter);
        const amount = formatMoney(sum(row, meter), currency);
        if (!line) return amount;
        return (
          <Link
            to="/usage"
            search={{ ...monthSpan(month), cluster: row.id, meter }}
            title={exactQuantity(meter, line.quantity)}
          >
            {amount}
          </Link>
        );
      },
    })),
    {
      id: "total",
      header: "Together",
      align: "right",
      width: 120,
      sortBy: (row) => row.total,
      cell: (row) => <strong>{formatMoney(row.total, currency)}</strong>,
    },
  ];
}
