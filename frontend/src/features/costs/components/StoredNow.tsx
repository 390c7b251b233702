import type { ReactElement } from "react";
import type { Stored } from "@/lib/api/types";
import { formatBytes, formatCount } from "@/lib/format/bytes";
import { utcDayOfMonth, utcTime } from "@/lib/format/utc";

/** The bytes that topics hold now, and when they were metered. */
export function StoredNow({ stored }: { stored: Stored }): ReactElement {
  if (stored.at === null) return <>not known how much now</>;
  const at = new Date(stored.at);
  return (
    <span title={`${formatCount(stored.bytes)} bytes`}>
      {formatBytes(stored.bytes)} now ({utcDayOfMonth(at)}, {utcTime(at)} UTC)
    </span>
  );
}
