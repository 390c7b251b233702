import { Tooltip, UnstyledButton } from "@mantine/core";
import type { ReactElement } from "react";
import { zoneName } from "@/lib/format/instant";
import { useNow } from "@/lib/useNow";
import { chooseZone, useZone } from "@/lib/zone";
import classes from "./TopLine.module.css";

/** Names the zone of all times on the page; pressed, it changes between UTC and the browser's. */
export function ZoneButton(): ReactElement {
  const zone = useZone();
  const now = useNow();
  const name = zoneName(now, zone);
  const local = zoneName(now, "local");
  const other = zone === "utc" ? "local" : "utc";
  const otherName = other === "utc" ? "UTC" : `this browser's zone (${local})`;
  // There is nothing to choose where both are the same.
  if (local === "UTC") return <span className={classes.zone}>UTC</span>;
  return (
    <Tooltip label={`Times are shown in ${name}. Press for ${otherName}.`}>
      <UnstyledButton
        className={classes.zone}
        aria-label={`Times in ${name}; change to ${otherName}`}
        onClick={() => {
          chooseZone(other);
        }}
      >
        {name}
      </UnstyledButton>
    </Tooltip>
  );
}
