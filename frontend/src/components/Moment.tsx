import { Tooltip } from "@mantine/core";
import type { ReactElement } from "react";
import { formatAge, formatInstant, formatRelative } from "@/lib/format/time";
import { useNow } from "@/lib/useNow";

/** Shows how long ago an instant was, with the exact time on hover. */
export function Moment({ at }: { at: string | null | undefined }): ReactElement {
  const now = useNow();
  if (!at) return <span>–</span>;
  const instant = new Date(at);
  return (
    <Tooltip label={formatInstant(instant)}>
      <time dateTime={at}>{formatRelative(instant, now)}</time>
    </Tooltip>
  );
}

/** Shows how long ago an instant was, without "ago", with the exact time on hover. */
export function Lasting({ since }: { since: string }): ReactElement {
  const now = useNow();
  const instant = new Date(since);
  return (
    <Tooltip label={`since ${formatInstant(instant)}`}>
      <time dateTime={since}>{formatAge(instant, now)}</time>
    </Tooltip>
  );
}
