import { Link } from "@tanstack/react-router";
import type { ReactElement } from "react";
import { Tile, Tiles } from "@/components/Tile";
import type { Costs } from "@/lib/api/types";
import { formatPriced, meterName } from "@/lib/format/meters";
import { formatMoney } from "@/lib/format/money";
import { minutesOfMonth, monthSpan } from "@/lib/format/utc";
import { meterTotal } from "../clusters";

const METERS = ["ingress_bytes", "egress_bytes", "storage_byte_minutes"] as const;

/** The tiles of the present month: its cost, and the usage of the three largest meters. */
export function MonthSoFar({ costs }: { costs: Costs | undefined }): ReactElement {
  return (
    <Tiles>
      <Tile
        label="Cost so far"
        value={
          costs && <Link to="/usage/costs">{formatMoney(costs.total_minor, costs.currency)}</Link>
        }
        note={
          costs &&
          `${formatMoney(costs.forecast_minor, costs.currency)} by its end, at the present rate`
        }
      />
      {METERS.map((meter) => (
        <Tile
          key={meter}
          label={meterName(meter)}
          value={
            costs && (
              <Link to="/usage" search={{ ...monthSpan(costs.month), meter }}>
                {words(costs, meter)}
              </Link>
            )
          }
        />
      ))}
    </Tiles>
  );
}

function words(costs: Costs, meter: string): string {
  const { quantity: counted } = meterTotal(costs, meter);
  const unit = meter === "storage_byte_minutes" ? "GiB-month" : "GiB";
  return formatPriced(counted, unit, minutesOfMonth(costs.month));
}
