import { Skeleton } from "@mantine/core";
import { Link } from "@tanstack/react-router";
import type { ReactElement } from "react";
import type { Costs, Price, Stored } from "@/lib/api/types";
import {
  exactQuantity,
  formatPriced,
  formatUnits,
  inUnits,
  meterMeaning,
  meterName,
} from "@/lib/format/meters";
import { formatMoney } from "@/lib/format/money";
import { minutesOfMonth, monthBefore } from "@/lib/format/utc";
import { meterTotal } from "../clusters";
import { ROWS, rowsOfMonth } from "../links";
import { StoredNow } from "./StoredNow";
import classes from "./MeterBars.module.css";

interface Props {
  costs: Costs | undefined;
  /** null where there is none: the service had no prices then. */
  before: Costs | null | undefined;
  prices: readonly Price[] | undefined;
  /** What topics hold now; undefined for another month than the present one. */
  stored: Stored | undefined;
}

/** The priced meters as bars: this month, the month before, and the free quantity. */
export function MeterBars({ costs, before, prices, stored }: Props): ReactElement {
  if (!costs || before === undefined || !prices) return <Skeleton height={220} />;
  return (
    <div className={classes.root}>
      {prices.map((price) => (
        <MeterBar
          key={price.meter}
          price={price}
          costs={costs}
          before={before}
          stored={price.meter === "storage_byte_minutes" ? stored : undefined}
        />
      ))}
    </div>
  );
}

interface BarProps {
  price: Price;
  costs: Costs;
  before: Costs | null;
  stored: Stored | undefined;
}

function MeterBar({ price, costs, before, stored }: BarProps): ReactElement {
  const { meter } = price;
  const here = meterTotal(costs, meter);
  const there = before && meterTotal(before, meter);
  const { free_unit: unit, free_units: free } = price;
  const now = inUnits(here.quantity, unit, minutesOfMonth(costs.month));
  const minutesBefore = minutesOfMonth(monthBefore(costs.month));
  const then = inUnits(there?.quantity ?? 0, unit, minutesBefore);
  const scale = Math.max(now, then, free) || 1;
  const percent = (value: number): string => `${String((100 * value) / scale)}%`;
  return (
    <div className={classes.meter}>
      <div className={classes.name} title={meterMeaning(meter)}>
        {meterName(meter)}
      </div>
      <div className={classes.bars} aria-hidden="true">
        <div className={classes.now} style={{ width: percent(now) }} />
        <div className={classes.then} style={{ width: percent(then) }} />
        {free > 0 && <div className={classes.free} style={{ left: percent(free) }} />}
      </div>
      <div className={classes.figures} data-prose>
        <Link
          to="/usage"
          search={rowsOfMonth(costs.month, { meter })}
          hash={ROWS}
          title={exactQuantity(meter, here.quantity)}
        >
          {formatPriced(here.quantity, unit, minutesOfMonth(costs.month))}
        </Link>
        {free > 0 && <span className={classes.quiet}> of {formatUnits(free, unit)} free</span>}
        {stored && (
          <div className={classes.quiet}>
            <StoredNow stored={stored} />
          </div>
        )}
        {there && (
          <div className={classes.quiet}>
            month before: {formatPriced(there.quantity, unit, minutesBefore)},{" "}
            {formatMoney(there.amount, costs.currency)}
          </div>
        )}
      </div>
      <div className={classes.amount}>{formatMoney(here.amount, costs.currency)}</div>
    </div>
  );
}
