import { Link } from "@tanstack/react-router";
import { type ReactElement, type ReactNode, useMemo } from "react";
import { type Column, DataTable } from "@/components/DataTable";
import { Name } from "@/components/Name";
import type { Price } from "@/lib/api/types";
import { exactQuantity, meterName } from "@/lib/format/meters";
import { formatMoney } from "@/lib/format/money";
import { ROWS, type RowsSearch } from "../links";
import type { Share } from "../shares";

interface Props {
  /** The noun of a part, such as "Topic". */
  title: string;
  shares: readonly Share[] | undefined;
  prices: readonly Price[] | undefined;
  currency: string;
  /** Whether the parts lie in clusters, which have a column. */
  inClusters?: boolean;
  /** Whether the order is that of the parts themselves, as of days. */
  ordered?: boolean;
}

/**
 * The cost of a month by cluster, topic, credential or day, and by meter. The parts add up to the
 * whole cost, and each amount links to exactly the usage rows that it is made of.
 */
export function ShareTable(props: Props): ReactElement {
  const { title, shares, prices, currency, inClusters = false, ordered = false } = props;
  const columns = useMemo(
    () => columnsOf({ title, prices: prices ?? [], currency, inClusters }),
    [title, prices, currency, inClusters],
  );
  return (
    <DataTable
      label={`Cost by ${title.toLowerCase()}`}
      columns={columns}
      rows={prices && shares}
      rowId={(share) => share.key}
      initialSort={[ordered ? { id: "name", desc: true } : { id: "amount", desc: true }]}
    />
  );
}

interface Shown {
  title: string;
  prices: readonly Price[];
  currency: string;
  inClusters: boolean;
}

function columnsOf({ title, prices, currency, inClusters }: Shown): Column<Share>[] {
  const cluster: Column<Share> = {
    id: "cluster",
    header: "Cluster",
    sortBy: (share) => share.cluster,
    cell: (share) => share.cluster || "–",
  };
  return [
    {
      id: "name",
      header: title,
      sortBy: ({ order }) => order,
      cell: ({ name, rows }) => (
        <Rows search={rows}>
          <Name text={name} />
        </Rows>
      ),
    },
    ...(inClusters ? [cluster] : []),
    ...prices.map(({ meter }): Column<Share> => ({
      id: meter,
      header: meterName(meter),
      align: "right",
      width: 120,
      sortBy: (share) => partOf(share, meter)?.amount_minor ?? 0,
      cell: (share) => {
        const part = partOf(share, meter);
        const amount = formatMoney(part?.amount_minor ?? 0, currency);
        if (!part) return amount;
        return (
          <Rows
            search={share.rows && { ...share.rows, meter }}
            title={exactQuantity(meter, part.quantity)}
          >
            {amount}
          </Rows>
        );
      },
    })),
    {
      id: "amount",
      header: "Together",
      align: "right",
      width: 120,
      sortBy: ({ amount }) => amount,
      cell: ({ amount, rows }) => (
        <Rows search={rows}>
          <strong>{formatMoney(amount, currency)}</strong>
        </Rows>
      ),
    },
  ];
}

const partOf = ({ meters }: Share, meter: string): Share["meters"][number] | undefined =>
  meters.find((part) => part.meter === meter);

interface RowsProps {
  search: RowsSearch | null;
  title?: string;
  children: ReactNode;
}

/** A link to usage rows; text alone where they have no address. */
function Rows({ search, title, children }: RowsProps): ReactElement {
  if (!search) return <span title={title}>{children}</span>;
  return (
    <Link to="/usage" search={search} hash={ROWS} title={title}>
      {children}
    </Link>
  );
}
