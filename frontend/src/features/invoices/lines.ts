import type { Invoice, InvoiceLine } from "@/lib/api/types";
import { formatBytes } from "@/lib/format/bytes";
import { formatUnits } from "@/lib/format/meters";
import { monthSpan } from "@/lib/format/utc";

/** Where the rows of a line are: the usage of its month, cluster and meter, by the day. */
export interface RowsSearch {
  from: string;
  to: string;
  cluster?: string;
  meter?: string;
}

/** The rows that a line was priced from; null for a line that no usage is behind. */
export function rowsSearch(
  { month }: Pick<Invoice, "month">,
  { meter, cluster_id, usage_row_ids }: InvoiceLine,
): RowsSearch | null {
  if (usage_row_ids.length === 0) return null;
  return { ...monthSpan(month), cluster: cluster_id || undefined, meter: meter || undefined };
}

/** A line's quantity, or the free part of it, in the unit that has the price; bytes as such. */
export function unitsOf(line: InvoiceLine, quantity: number | null): string {
  if (quantity === null || line.price_unit_size === null) return "–";
  if (line.price_unit === "GiB") return formatBytes(quantity);
  return formatUnits(quantity / line.price_unit_size, line.price_unit);
}
