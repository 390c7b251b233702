import { Link } from "@tanstack/react-router";
import type { ReactElement } from "react";
import { Tile, Tiles } from "@/components/Tile";
import type { Costs } from "@/lib/api/types";
import { formatMoney } from "@/lib/format/money";
import { monthName, utcDayOfMonth, utcTime } from "@/lib/format/utc";
import { FORECAST_BASIS, monthCost } from "../clusters";
import { ROWS, rowsOfMonth } from "../links";

interface Props {
  costs: Costs | undefined;
  /** null where there is none: the service had no prices then. */
  before: Costs | null | undefined;
  /** Whether the month is the present one: only that has a forecast. */
  present: boolean;
}

/** The tiles of a month's amounts. */
export function CostTiles({ costs, before, present }: Props): ReactElement {
  const cost = costs && monthCost(costs);
  return (
    <Tiles>
      <Tile
        label={present ? "So far" : "In all"}
        value={
          cost && (
            <Link
              to="/usage"
              search={rowsOfMonth(costs.month)}
              hash={ROWS}
              title="The rows behind it"
            >
              {formatMoney(cost.soFar, costs.currency)}
            </Link>
          )
        }
        note={untilWords(costs)}
      />
      {present && (
        <Tile
          label="Forecast"
          value={cost && formatMoney(cost.forecast, costs.currency)}
          note={`by the end of the month, ${FORECAST_BASIS}`}
        />
      )}
      {cost && cost.beyond > 0 && (
        <Tile
          label="Not billed"
          value={formatMoney(cost.beyond, costs.currency)}
          note="slipped past a suspending budget"
        />
      )}
      <Tile
        label="Month before"
        value={
          before === null
            ? "–"
            : before && (
                <Link to="/usage/costs" search={{ month: before.month }}>
                  {formatMoney(monthCost(before).soFar, before.currency)}
                </Link>
              )
        }
        note={before && monthName(before.month)}
      />
    </Tiles>
  );
}

function untilWords(costs: Costs | undefined): string | undefined {
  if (!costs) return undefined;
  if (costs.provisional_until === null) return "nothing is counted yet";
  const at = new Date(costs.provisional_until);
  return `counted until ${utcDayOfMonth(at)}, ${utcTime(at)} UTC`;
}
