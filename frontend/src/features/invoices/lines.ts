import type { Invoice, InvoiceLine } from "@/lib/api/types";
import { formatBytes } from "@/lib/format/bytes";
import { formatUnits } from "@/lib/format/meters";
import { monthSpan } from "@/lib/format/utc";

/** The search of the usage page for a line's rows: its month, cluster and meter, by day. */
export interface RowsSearch {
  from: string;
  to: string;
  cluster?: string;
  meter?: string;
  billed: true;
}

/** Returns the search for a line's usage rows; null for a line without usage. */
export function rowsSearch(
  { month }: Pick<Invoice, "month">,
  { meter, cluster_id, usage_row_ids }: InvoiceLine,
): RowsSearch | null {
  if (usage_row_ids.length === 0) return null;
  return {
    ...monthSpan(month),
    cluster: cluster_id || undefined,
    meter: meter || undefined,
    billed: true,
  };
}

/** Formats a line's quantity, or the free part of it, in the unit of the price. */
export function unitsOf(line: InvoiceLine, quantity: string | null): string {
  if (quantity === null || line.price_unit_size === null) return "–";
  if (line.price_unit === "GiB") return formatBytes(quantity);
  return formatUnits(Number(quantity) / line.price_unit_size, line.price_unit);
}
