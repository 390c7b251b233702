import { Skeleton } from "@mantine/core";
import { type CSSProperties, lazy, type ReactElement, Suspense, useState } from "react";
import { loadPart } from "@/lib/parts";
import { formatWindow } from "@/lib/format/utc";
import type { Picture } from "./Plot";
import { Name } from "../Name";
import classes from "./TimeChart.module.css";

const Plot = lazy(async () => ({ default: (await loadPart(() => import("./Plot"))).Plot }));

interface Props {
  title: string;
  /** What the chart shows, for people who cannot see it. */
  summary: string;
  /** Undefined while it loads. */
  picture: Picture | undefined;
  format: (value: number) => string;
  /** The total of each series, which the legend shows while no window is pointed at. */
  totals?: ReadonlyMap<string, string>;
  height?: number;
  /** Whether it has no legend, since the one of the chart above holds for this one too. */
  compact?: boolean;
  onZoom?: (from: number, to: number) => void;
}

const HEIGHT = 220;

/** A chart over time with a legend, which shows the values of the window that is pointed at. */
export function TimeChart(props: Props): ReactElement {
  const { title, summary, picture, format, totals, height = HEIGHT, compact, onZoom } = props;
  const [point, setPoint] = useState<number | null>(null);
  return (
    <figure className={classes.root} aria-label={title}>
      <figcaption className={classes.head}>
        <span className={classes.title}>{title}</span>
        {picture && point !== null && (
          <span className={classes.when}>{windowWords(picture, point)}</span>
        )}
        {picture &&
          (compact ? (
            <span className={classes.sum}>{point !== null && format(sumAt(picture, point))}</span>
          ) : (
            <Legend picture={picture} point={point} format={format} totals={totals} />
          ))}
      </figcaption>
      {picture ? (
        <div role="img" aria-label={summary}>
          <Suspense fallback={<Skeleton height={height} />}>
            <Plot
              picture={picture}
              format={format}
              height={height}
              onPoint={setPoint}
              onZoom={onZoom}
            />
          </Suspense>
        </div>
      ) : (
        <Skeleton height={height} />
      )}
    </figure>
  );
}

function windowWords({ starts, end }: Picture, index: number): string {
  const start = starts[index];
  if (start === undefined) return "";
  return `${formatWindow(new Date(start), new Date(starts[index + 1] ?? end))} UTC`;
}

/** Returns the sum of all groups in a window. */
function sumAt({ series }: Picture, index: number): number {
  return series.reduce((sum, { values }) => sum + (values[index] ?? 0), 0);
}

interface LegendProps {
  picture: Picture;
  point: number | null;
  format: (value: number) => string;
  totals: ReadonlyMap<string, string> | undefined;
}

function Legend({ picture, point, format, totals }: LegendProps): ReactElement {
  const { series, lines = [], marks = [], provisionalFrom } = picture;
  const at = (values: readonly (number | null)[], key: string): string | undefined => {
    if (point === null) return totals?.get(key);
    const value = values[point];
    return value == null ? undefined : format(value);
  };
  return (
    <ul className={classes.legend}>
      {[...new Set(series.map(({ label }) => label))].map((label) => {
        // Both directions of a group are one entry of the legend, with two values.
        const same = series.filter((one) => one.label === label);
        const values = same.flatMap((one) => at(one.values, one.key) ?? []);
        const color = same[0]?.color ?? "--quiet";
        return (
          <Entry key={label} kind="area" color={color} label={label} value={values.join(" / ")} />
        );
      })}
      {lines.map(({ key, label, color, values }) => (
        <Entry key={key} kind="line" color={color} label={label} value={at(values, key)} />
      ))}
      {marks.map(({ key, label, color }) => (
        <Entry key={key} kind="line" color={color} label={label} />
      ))}
      {provisionalFrom !== undefined && (
        <Entry kind="hatch" color="--quiet" label="Provisional: may still change" />
      )}
    </ul>
  );
}

interface EntryProps {
  kind: "area" | "line" | "hatch";
  color: string;
  label: string;
  value?: string;
}

function Entry({ kind, color, label, value }: EntryProps): ReactElement {
  return (
    <li>
      <span
        className={classes.swatch}
        data-kind={kind}
        style={{ "--swatch": `var(${color})` } as CSSProperties}
        aria-hidden="true"
      />
      <span className={classes.label}>
        <Name text={label} />
      </span>
      {value && <span className={classes.value}>{value}</span>}
    </li>
  );
}
