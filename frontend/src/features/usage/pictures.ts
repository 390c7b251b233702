import type { ChartSeries } from "@/components/chart/layers";
import type { Picture } from "@/components/chart/Plot";
import { formatLevel, levelOf } from "@/lib/format/meters";
import type { UsageSeries } from "./api/usage";
import { nextWindow, type Range, windowsOf } from "./ranges";
import {
  countedMinutes,
  type GroupBy,
  groupOrder,
  type Level,
  levelsOf,
  NOT_BILLED,
  OTHERS,
  ownGroups,
  provisionalFrom,
} from "./series";

const COLORS = 6;

/**
 * Returns the colour of a group by its place in the order. The groups that are summed have the
 * last colour, and what is not billed one of its own.
 */
export function colorOf(key: string, order: readonly string[]): string {
  if (key === NOT_BILLED) return "--series-apart";
  const place = order.indexOf(key);
  if (key === OTHERS || place >= ownGroups(order).length) return "--series-rest";
  return `--series-${String((Math.max(place, 0) % COLORS) + 1)}`;
}

/** A picture with the total of each series over the range. */
export interface Drawn {
  picture: Picture;
  totals: ReadonlyMap<string, string>;
}

interface Drawing {
  usage: UsageSeries;
  by: GroupBy;
  nameOf: (key: string) => string;
}

/** Returns the minutes of a range that have passed. */
export function passedMinutes(range: Range, now: Date): number {
  const starts = windowsOf(range, now);
  return starts.reduce((sum, at) => sum + countedMinutes(new Date(at), range.granularity, now), 0);
}

/** Returns the picture of traffic: bytes in above the line, bytes out below it. */
export function trafficPicture({ usage, by, nameOf }: Drawing): Drawn {
  const order = groupOrder(usage.items, by);
  const shown = { items: usage.items, by, order };
  const grouped = by !== "meter";
  const side = (meter: string, name: string, direction: "up" | "down", color: string): Drawn => {
    const levels = levelsOf(
      { ...shown, meter, nameOf: grouped ? nameOf : (key) => wordsOf(name, key) },
      usage.range,
      usage.readAt,
    );
    const series = levels.map((level): ChartSeries => ({
      key: `${direction} ${level.key}`,
      label: level.label,
      color: grouped || level.key === NOT_BILLED ? colorOf(level.key, order) : color,
      values: level.values,
      side: direction,
    }));
    return drawn(usage, series, levels, meter);
  };
  const up = side("ingress_bytes", "In", "up", "--series-1");
  const down = side("egress_bytes", "Out", "down", "--series-2");
  const both = [...up.picture.series, ...down.picture.series];
  // A direction without usage has one line at zero, which belongs to no group.
  const groups = both.filter(({ values }) => values.some((value) => value !== 0));
  const series = grouped && groups.length > 0 ? groups : both;
  return {
    picture: { ...up.picture, series },
    totals: new Map([...up.totals, ...down.totals]),
  };
}

const wordsOf = (name: string, key: string): string =>
  key === NOT_BILLED ? `${name}, not billed` : name;

/** Returns the picture of one meter, stacked by group. */
export function meterPicture({ usage, by, nameOf }: Drawing, meter: string): Drawn {
  const order = groupOrder(usage.items, by);
  const levels = levelsOf(
    { items: usage.items, by, order, meter, nameOf },
    usage.range,
    usage.readAt,
  );
  const series = levels.map((level): ChartSeries => ({
    key: level.key,
    label: level.label,
    color: by === "meter" && level.key !== NOT_BILLED ? "--series-1" : colorOf(level.key, order),
    values: level.values,
  }));
  return drawn(usage, series, levels, meter);
}

function drawn(
  usage: UsageSeries,
  series: ChartSeries[],
  levels: readonly Level[],
  meter: string,
): Drawn {
  const { range, readAt } = usage;
  const minutes = passedMinutes(range, readAt);
  const starts = windowsOf(range, readAt);
  const last = starts.at(-1);
  const totals = levels.map((level, index): [string, string] => [
    series[index]?.key ?? level.key,
    formatLevel(meter, levelOf(meter, level.total, minutes)),
  ]);
  return {
    picture: {
      starts,
      end: (last === undefined
        ? range.to
        : nextWindow(new Date(last), range.granularity)
      ).getTime(),
      series,
      provisionalFrom: provisionalFrom(usage.items),
      shape: "windows",
      steps: meter.includes("byte") ? "binary" : meter === "broker_seconds" ? "time" : "decimal",
    },
    totals: new Map(totals),
  };
}
