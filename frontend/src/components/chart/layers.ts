/** One area of a stack. `down` areas grow below the line, so that two directions mirror. */
export interface ChartSeries {
  key: string;
  label: string;
  /** A custom property of the theme: `--series-1`. */
  color: string;
  /** null where nothing is known, as for days in the future. */
  values: readonly (number | null)[];
  side?: "up" | "down";
}

/** A line over the areas that is not stacked, such as a forecast. */
export interface ChartLine {
  key: string;
  label: string;
  color: string;
  /** null where the line is not drawn. */
  values: readonly (number | null)[];
}

/** A level that is drawn through the whole chart, such as a budget. */
export interface ChartMark {
  key: string;
  label: string;
  color: string;
  value: number;
}

/** A series as it is drawn: its own values on top of those of the series before it. */
export interface Layer {
  key: string;
  color: string;
  values: (number | null)[];
}

/**
 * The layers of stacked series in the order in which they are painted: the outermost first, so that
 * each one covers the part of it that belongs to the inner ones.
 */
export function layersOf(series: readonly ChartSeries[]): Layer[] {
  return (["up", "down"] as const).flatMap((side) => {
    const sign = side === "up" ? 1 : -1;
    const layers: Layer[] = [];
    let below: readonly (number | null)[] = [];
    for (const { key, color, values, side: of = "up" } of series) {
      if (of !== side) continue;
      const sums = values.map((value, index) =>
        value === null ? null : (below[index] ?? 0) + sign * value,
      );
      layers.push({ key, color, values: sums });
      below = sums;
    }
    return layers.reverse();
  });
}

/** Returns the lowest and the highest level that a chart has to show. They include 0. */
export function boundsOf(
  layers: readonly Layer[],
  lines: readonly ChartLine[],
  marks: readonly ChartMark[],
): [number, number] {
  const shown = [
    0,
    ...[...layers, ...lines].flatMap(({ values }) => values.map((value) => value ?? 0)),
    ...marks.map((mark) => mark.value),
  ];
  let [least, greatest] = [0, 0];
  for (const value of shown) {
    least = Math.min(least, value);
    greatest = Math.max(greatest, value);
  }
  if (least === 0 && greatest === 0) return [0, 1];
  const room = 1.08;
  return [least * room, greatest * room];
}

export type Steps = "binary" | "decimal" | "time";

const upTo = (count: number, make: (index: number) => number[]): number[] =>
  Array.from({ length: count }, (_, index) => make(index)).flat();

/** The possible distances of an axis's ticks, so that bytes and seconds have round ticks. */
export const TICK_STEPS: Record<Steps, number[]> = {
  binary: upTo(60, (power) => [2 ** power]),
  decimal: upTo(18, (power) => [10 ** power, 2 * 10 ** power, 5 * 10 ** power]),
  time: [1, 5, 15, 30, 60, 300, 900, 1_800, 3_600, 7_200, 14_400, 28_800, 86_400, 172_800, 604_800],
};
