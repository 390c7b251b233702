import { type ReactElement, useCallback, useMemo } from "react";
import type { ChartMark, ChartSeries } from "@/components/chart/layers";
import type { Picture } from "@/components/chart/Plot";
import { TimeChart } from "@/components/chart/TimeChart";
import type { Costs, Prices, UsageItem } from "@/lib/api/types";
import { meterName } from "@/lib/format/meters";
import { formatMoney } from "@/lib/format/money";
import { monthName, monthStart } from "@/lib/format/utc";
import { daysOf, drawnBudgets, forecastLine, growthOf } from "../growth";

/** A budget as the chart shows it. */
export interface Threshold {
  id: string;
  label: string;
  amountMinor: number;
  over: boolean;
}

interface Props {
  month: string;
  costs: Costs | undefined;
  prices: Prices | undefined;
  /** The month's usage by day, and when it was read. */
  usage: { items: readonly UsageItem[]; readAt: Date } | undefined;
  thresholds: readonly Threshold[] | undefined;
}

/** The chart of the month's cost by day, with the forecast and the budgets. */
export function CostChart({ month, costs, prices, usage, thresholds }: Props): ReactElement {
  const picture = useMemo(
    () =>
      costs && prices && usage && thresholds
        ? pictureOf(month, costs, prices, usage, thresholds)
        : undefined,
    [month, costs, prices, usage, thresholds],
  );
  const currency = costs?.currency ?? "USD";
  const format = useCallback((minor: number) => formatMoney(minor, currency), [currency]);
  return (
    <TimeChart
      title={`Cost of ${monthName(month)}`}
      summary="The cost by day, its forecast, and the lowest budgets. The figures are beside it."
      picture={picture}
      format={format}
      height={240}
    />
  );
}

function pictureOf(
  month: string,
  costs: Costs,
  prices: Prices,
  { items, readAt }: { items: readonly UsageItem[]; readAt: Date },
  thresholds: readonly Threshold[],
): Picture {
  const growth = growthOf(items, prices.prices, costs.currency, month, readAt);
  const { total_minor, forecast_minor } = costs;
  const open = readAt.getTime() < monthStart(month, 1).getTime();
  return {
    starts: daysOf(month),
    end: monthStart(month, 1).getTime(),
    series: growth.map(({ meter, values }, index): ChartSeries => ({
      key: meter,
      label: meterName(meter),
      color: `--series-${String(index + 1)}`,
      values,
    })),
    lines: open
      ? [
          {
            key: "forecast",
            label: "Forecast",
            color: "--quiet",
            values: forecastLine(month, total_minor, forecast_minor, readAt),
          },
        ]
      : [],
    marks: drawnBudgets(thresholds).map(({ id, label, amountMinor, over }): ChartMark => ({
      key: id,
      label,
      color: over ? "--failed" : "--suspended",
      value: amountMinor,
    })),
    shape: "points",
    steps: "decimal",
  };
}
