import { type ReactElement, useMemo } from "react";
import { type Column, DataTable } from "@/components/DataTable";
import { Quantity } from "@/components/Quantity";
import { exactQuantity, formatPriced, meterMeaning, meterName } from "@/lib/format/meters";
import { minutesOfMonth } from "@/lib/format/utc";
import type { UsageSeries } from "../api/usage";
import { passedMinutes } from "../pictures";
import type { Range } from "../ranges";
import { type MeterSum, monthOfRange, partWords } from "../sums";

interface Props {
  /** The range that is summed; undefined while it loads. */
  usage: UsageSeries | undefined;
  sums: readonly MeterSum[] | undefined;
}

/** The sums of the rows below, to the last digit: what is billed, and apart from it what is not. */
export function RowSums({ usage, sums }: Props): ReactElement {
  const range = usage?.range;
  const minutes = usage ? passedMinutes(usage.range, usage.readAt) : 1;
  const columns = useMemo(() => columnsOf(range, minutes), [range, minutes]);
  return (
    <DataTable
      label="Sums of the rows"
      columns={columns}
      rows={sums}
      rowId={({ meter, part }) => `${meter} ${part}`}
    />
  );
}

const sentence = (words: string): string => words.charAt(0).toUpperCase() + words.slice(1);

/** The units of meters that count over time, in which their months are priced. */
const UNITS: Readonly<Record<string, string>> = {
  storage_byte_minutes: "GiB-month",
  partition_minutes: "partition-month",
};

function columnsOf(range: Range | undefined, minutes: number): Column<MeterSum>[] {
  const month = range && monthOfRange(range);
  // Minutes say nothing of whether they are published: they are never replaced.
  const published = range?.granularity === "hour" || range?.granularity === "day";
  return [
    {
      id: "meter",
      header: "Meter",
      width: 130,
      cell: ({ meter }) => <span title={meterMeaning(meter)}>{meterName(meter)}</span>,
    },
    { id: "part", header: "Part", cell: ({ part }) => sentence(partWords(part)) },
    {
      id: "quantity",
      header: "Quantity",
      align: "right",
      width: 170,
      cell: ({ meter, quantity }) => {
        const unit = UNITS[meter];
        return unit && month ? (
          formatPriced(quantity, unit, minutesOfMonth(month))
        ) : (
          <Quantity meter={meter} quantity={quantity} minutes={minutes} />
        );
      },
    },
    {
      id: "exactly",
      header: "Exactly",
      align: "right",
      width: 260,
      cell: ({ meter, quantity }) => exactQuantity(meter, quantity),
    },
    ...(published
      ? [
          {
            id: "provisional",
            header: "Provisional",
            align: "right" as const,
            width: 260,
            cell: ({ meter, provisional }: MeterSum) =>
              provisional > 0n ? exactQuantity(meter, provisional) : "–",
          },
        ]
      : []),
  ];
}
