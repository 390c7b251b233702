import { type ReactElement, useMemo } from "react";
import { type Column, DataTable } from "@/components/DataTable";
import type { Price, Prices } from "@/lib/api/types";
import { formatUnits, meterMeaning, meterName } from "@/lib/format/meters";
import { formatUnitPrice } from "@/lib/format/money";

/** The price and the free quantity of each meter. */
export function PriceTable({ prices }: { prices: Prices | undefined }): ReactElement {
  const columns = useMemo(() => columnsOf(prices?.currency ?? "USD"), [prices]);
  return (
    <DataTable
      label="Prices"
      columns={columns}
      rows={prices?.prices}
      rowId={(price) => price.meter}
    />
  );
}

function columnsOf(currency: string): Column<Price>[] {
  return [
    {
      id: "meter",
      header: "Meter",
      width: 130,
      cell: ({ meter }) => <strong>{meterName(meter)}</strong>,
    },
    {
      id: "what",
      header: "What is counted",
      isSentence: true,
      cell: ({ meter }) => meterMeaning(meter),
    },
    {
      id: "price",
      header: "Price",
      align: "right",
      width: 200,
      cell: ({ unit, unit_price }) => `${formatUnitPrice(unit_price, currency)} per ${unit}`,
    },
    {
      id: "free",
      header: "Free",
      align: "right",
      width: 200,
      cell: ({ free_units, free_unit }) =>
        free_units > 0 ? formatUnits(free_units, free_unit) : "–",
    },
  ];
}
