import { Link } from "@tanstack/react-router";
import type { ReactElement } from "react";
import { Tile, Tiles } from "@/components/Tile";
import type { Costs, Stored } from "@/lib/api/types";
import { formatBytes } from "@/lib/format/bytes";
import { formatPriced, meterName } from "@/lib/format/meters";
import { formatMoney } from "@/lib/format/money";
import { minutesOfMonth, utcDayOfMonth, utcTime } from "@/lib/format/utc";
import { FORECAST_BASIS, meterTotal, monthCost } from "../clusters";
import { ROWS, rowsOfMonth } from "../links";

const TRAFFIC = ["ingress_bytes", "egress_bytes"] as const;
const STORAGE = "storage_byte_minutes";

interface Props {
  costs: Costs | undefined;
  /** What topics hold now. */
  stored: Stored | undefined;
}

/** The tiles of the present month: its cost, its traffic, and what is stored now. */
export function MonthSoFar({ costs, stored }: Props): ReactElement {
  const cost = costs && monthCost(costs);
  return (
    <Tiles>
      <Tile
        label="Cost so far"
        value={cost && <Link to="/usage/costs">{formatMoney(cost.soFar, costs.currency)}</Link>}
        note={cost && `${formatMoney(cost.forecast, costs.currency)} by its end, ${FORECAST_BASIS}`}
      />
      {TRAFFIC.map((meter) => (
        <Tile
          key={meter}
          label={meterName(meter)}
          value={costs && <Month costs={costs} meter={meter} />}
        />
      ))}
      <Tile
        label={meterName(STORAGE)}
        value={stored && (stored.at === null ? "not known" : formatBytes(stored.bytes))}
        note={
          <>
            {stored?.at && (
              <div>
                now: {utcDayOfMonth(new Date(stored.at))}, {utcTime(new Date(stored.at))} UTC
              </div>
            )}
            {costs && (
              <div>
                <Month costs={costs} meter={STORAGE} /> so far
              </div>
            )}
          </>
        }
      />
    </Tiles>
  );
}

/** What a meter has in a month, as a link to its rows. */
function Month({ costs, meter }: { costs: Costs; meter: string }): ReactElement {
  const { quantity: counted } = meterTotal(costs, meter);
  const unit = meter === STORAGE ? "GiB-month" : "GiB";
  return (
    <Link to="/usage" search={rowsOfMonth(costs.month, { meter })} hash={ROWS}>
      {formatPriced(counted, unit, minutesOfMonth(costs.month))}
    </Link>
  );
}
