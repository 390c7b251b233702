import { Tooltip } from "@mantine/core";
import type { ReactElement } from "react";
import { formatRelative } from "@/lib/format/time";
import { utcDayOfMonth, utcTime } from "@/lib/format/utc";
import { useNow } from "@/lib/useNow";

const WHY =
  "All usage up to then is in what is shown. Later figures are provisional: they only grow until " +
  "the nightly roll-up has checked and published them.";

/** A note on until when the usage is complete. */
export function CompleteNote({ until }: { until: string | null | undefined }): ReactElement | null {
  const now = useNow();
  if (until === undefined) return null;
  if (until === null) return <span>Nothing is complete yet</span>;
  const at = new Date(until);
  const distance = formatRelative(at, now);
  return (
    <Tooltip label={WHY} multiline w={320} events={{ hover: true, focus: true, touch: true }}>
      <span tabIndex={0}>
        Complete until {utcDayOfMonth(at)}, {utcTime(at)} UTC{distance && ` (${distance})`}
      </span>
    </Tooltip>
  );
}
