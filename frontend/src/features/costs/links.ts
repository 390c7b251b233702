import { monthSpan } from "@/lib/format/utc";

/** The place of `/usage` that a cost leads to: its sums and rows. */
export const ROWS = "rows";

/** What a cost is of; all of the month where nothing is named. */
export interface CostPlace {
  cluster?: string;
  /** Empty for what belongs to no topic. */
  topic?: string;
  /** Empty for what belongs to no principal. */
  principal?: string;
  meter?: string;
}

/** The search of the usage page. */
export interface RowsSearch extends CostPlace {
  from: string;
  to: string;
  billed: true;
}

/** Returns the search for exactly the usage rows that a cost of a month is made of. */
export function rowsOfMonth(month: string, place: CostPlace = {}): RowsSearch {
  return { ...monthSpan(month), ...place, billed: true };
}

/** Returns the search for the rows that the cost of a day like `2026-11-20` is made of. */
export function rowsOfDay(day: string): RowsSearch {
  const next = new Date(Date.parse(day) + 86_400_000).toISOString().slice(0, 10);
  return { from: day, to: next, billed: true };
}
