import { type ReactElement, useMemo } from "react";
import { type Column, DataTable } from "@/components/DataTable";
import { formatMoney } from "@/lib/format/money";

/** A part of a month's cost. */
export interface Share {
  key: string;
  name: string;
  cluster: string;
  /** In minor units. */
  amount: number;
}

interface Props {
  /** The noun of a part, such as "Topic". */
  title: string;
  shares: readonly Share[] | undefined;
  currency: string;
}

/** The cost of a month by topic or by credential. The parts add up to the whole cost. */
export function ShareTable({ title, shares, currency }: Props): ReactElement {
  const columns = useMemo(
    () => columnsOf(title, shares ?? [], currency),
    [title, shares, currency],
  );
  return (
    <DataTable
      label={`Cost by ${title.toLowerCase()}`}
      columns={columns}
      rows={shares}
      rowId={(share) => share.key}
      initialSort={[{ id: "amount", desc: true }]}
    />
  );
}

function columnsOf(title: string, shares: readonly Share[], currency: string): Column<Share>[] {
  const whole = shares.reduce((sum, { amount }) => sum + amount, 0);
  return [
    { id: "name", header: title, sortBy: ({ name }) => name, cell: ({ name }) => name },
    {
      id: "cluster",
      header: "Cluster",
      sortBy: ({ cluster }) => cluster,
      cell: ({ cluster }) => cluster || "–",
    },
    {
      id: "share",
      header: "Share",
      align: "right",
      width: 120,
      cell: ({ amount }) => (whole > 0 ? `${((100 * amount) / whole).toFixed(1)} %` : "–"),
    },
    {
      id: "amount",
      header: "Cost",
      align: "right",
      width: 120,
      sortBy: ({ amount }) => amount,
      cell: ({ amount }) => <strong>{formatMoney(amount, currency)}</strong>,
    },
  ];
}
