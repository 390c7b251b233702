import { VisuallyHidden } from "@mantine/core";
import { Link } from "@tanstack/react-router";
import type { ReactElement } from "react";
import { Quantity } from "@/components/Quantity";
import { Tile, Tiles } from "@/components/Tile";
import { isTimed, meterMeaning, meterName, METERS } from "@/lib/format/meters";
import type { UsageSeries } from "../api/usage";
import { passedMinutes } from "../pictures";
import { totalOf } from "../series";

/** The tiles with the sums of a range. Each links to the rows that it is the sum of. */
export function UsageTiles({ usage }: { usage: UsageSeries | undefined }): ReactElement {
  const minutes = usage && passedMinutes(usage.range, usage.readAt);
  return (
    <Tiles>
      {METERS.map((meter) => (
        <Tile
          key={meter}
          label={meterName(meter)}
          value={
            usage &&
            minutes !== undefined && (
              <Link
                to="/usage"
                search={(before) => ({ ...before, meter })}
                hash="rows"
                hashScrollIntoView={{ behavior: "smooth" }}
                resetScroll={false}
                title={meterMeaning(meter)}
              >
                <VisuallyHidden>{meterName(meter)}: show the rows of </VisuallyHidden>
                <Quantity meter={meter} quantity={totalOf(usage.items, meter)} minutes={minutes} />
              </Link>
            )
          }
          note={noteOf(meter)}
        />
      ))}
    </Tiles>
  );
}

function noteOf(meter: string): string {
  if (meter === "broker_seconds") return "not billed";
  return isTimed(meter) ? "on average" : "in this time";
}
