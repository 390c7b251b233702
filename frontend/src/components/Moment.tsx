import { Tooltip } from "@mantine/core";
import type { ReactElement } from "react";
import { formatInstant, formatMinute } from "@/lib/format/instant";
import { formatAge, formatRelative } from "@/lib/format/time";
import { useNow } from "@/lib/useNow";
import { useZone } from "@/lib/zone";

/**
 * Shows how long ago an instant was, or its date where it is a day away or more; the exact time on
 * hover.
 */
export function Moment({ at }: { at: string | Date | null | undefined }): ReactElement {
  const now = useNow();
  const zone = useZone();
  if (!at) return <span>–</span>;
  const instant = new Date(at);
  return (
    <Tooltip label={bothZones(instant)} multiline>
      <time dateTime={typeof at === "string" ? at : instant.toISOString()}>
        {formatRelative(instant, now) ?? formatMinute(instant, zone)}
      </time>
    </Tooltip>
  );
}

/** Shows how long ago an instant was, without "ago", with the exact time on hover. */
export function Lasting({ since }: { since: string }): ReactElement {
  const now = useNow();
  const instant = new Date(since);
  return (
    <Tooltip label={`since ${bothZones(instant)}`} multiline>
      <time dateTime={since}>{formatAge(instant, now)}</time>
    </Tooltip>
  );
}

/** Shows an instant exactly, to the minute or to the millisecond, with its zone. */
export function Instant({
  at,
  to = "millisecond",
}: {
  at: string | Date;
  to?: "minute" | "millisecond";
}): ReactElement {
  const zone = useZone();
  const instant = new Date(at);
  return (
    <time dateTime={instant.toISOString()} title={bothZones(instant)}>
      {to === "minute" ? formatMinute(instant, zone) : formatInstant(instant, zone)}
    </time>
  );
}

/** The exact time in the browser's zone, and in UTC where that is another text. */
function bothZones(instant: Date): string {
  const [local, utc] = [formatInstant(instant, "local"), formatInstant(instant, "utc")];
  return local === utc ? utc : `${local} = ${utc}`;
}
