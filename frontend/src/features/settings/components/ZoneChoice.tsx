import { SegmentedControl } from "@mantine/core";
import type { ReactElement } from "react";
import { zoneName } from "@/lib/format/instant";
import { useNow } from "@/lib/useNow";
import { chooseZone, useZone, type Zone } from "@/lib/zone";

/** The choice of the zone in which times are shown. It stays in this browser. */
export function ZoneChoice(): ReactElement {
  const zone = useZone();
  const local = zoneName(useNow(), "local");
  const place = Intl.DateTimeFormat().resolvedOptions().timeZone;
  return (
    <SegmentedControl
      size="xs"
      aria-label="Times"
      value={zone}
      onChange={(next) => {
        chooseZone(next as Zone);
      }}
      data={[
        { value: "local", label: `${place} (${local})` },
        { value: "utc", label: "UTC" },
      ]}
    />
  );
}
