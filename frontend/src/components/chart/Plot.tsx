import { useComputedColorScheme } from "@mantine/core";
import { type ReactElement, useEffect, useEffectEvent, useRef } from "react";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { timeTick } from "@/lib/format/utc";
import {
  boundsOf,
  type ChartLine,
  type ChartMark,
  type ChartSeries,
  layersOf,
  type Steps,
  TICK_STEPS,
} from "./layers";
import { blend, drawMark, hatchFrom, themeColor } from "./paint";

export interface Picture {
  /** Starts of the windows in ms, and the end of the last one. */
  starts: readonly number[];
  end: number;
  series: readonly ChartSeries[];
  lines?: readonly ChartLine[];
  marks?: readonly ChartMark[];
  /** The time in ms from which on the values may still change. */
  provisionalFrom?: number;
  /** `windows`: a value holds for its whole window. `points`: it is reached at the window's end. */
  shape: "windows" | "points";
  steps: Steps;
}

interface Props {
  picture: Picture;
  format: (value: number) => string;
  height: number;
  onPoint: (index: number | null) => void;
  /** Called with two times in ms when a range was selected with the mouse. */
  onZoom?: (from: number, to: number) => void;
}

const FILL_SHARE = 0.34;

/** The canvas of a chart. Its module is loaded only on pages with a chart. */
export function Plot({ picture, format, height, onPoint, onZoom }: Props): ReactElement {
  const host = useRef<HTMLDivElement>(null);
  const scheme = useComputedColorScheme("light");
  const pointed = useEffectEvent((index: number | null) => {
    onPoint(index);
  });
  const zoomed = useEffectEvent((from: number, to: number) => onZoom?.(from, to));
  const words = useEffectEvent((value: number) => format(value));
  const zooms = onZoom !== undefined;
  const present = useEffectEvent(() => picture);
  const drawn = useRef<uPlot>(undefined);
  const outline = outlineOf(picture);
  // What is drawn anew is a chart of another outline. New figures go into the one that is there.
  useEffect(() => {
    const element = host.current;
    if (!element) return undefined;
    const options = optionsOf(
      element,
      () => present(),
      (value) => words(value),
    );
    const chart = new uPlot(
      {
        ...options,
        width: element.clientWidth,
        height,
        cursor: {
          y: false,
          points: { show: false },
          drag: { x: zooms, y: false, setScale: false },
        },
        hooks: {
          ...options.hooks,
          setCursor: [
            ({ cursor: { idx } }) => {
              pointed(idx == null ? null : windowAt(present(), idx));
            },
          ],
          setSelect: [
            ({ select, posToVal }) => {
              if (select.width < 4) return;
              zoomed(
                posToVal(select.left, "x") * 1000,
                posToVal(select.left + select.width, "x") * 1000,
              );
            },
          ],
        },
      },
      dataOf(present()),
      element,
    );
    drawn.current = chart;
    const sizes = new ResizeObserver(() => {
      chart.setSize({ width: element.clientWidth, height });
    });
    sizes.observe(element);
    return () => {
      sizes.disconnect();
      drawn.current = undefined;
      chart.destroy();
      pointed(null);
    };
  }, [outline, height, scheme, zooms]);
  useEffect(() => {
    drawn.current?.setData(dataOf(picture));
  }, [picture]);
  return <div ref={host} style={{ height }} />;
}

/** Returns a text that is the same for all pictures that one chart can show. */
function outlineOf({ series, lines = [], shape, steps }: Picture): string {
  const areas = series.map(({ key, color, side }) => [key, color, side]);
  return JSON.stringify([areas, lines.map(({ key, color }) => [key, color]), shape, steps]);
}

/** Returns the columns of uPlot: the times in seconds, then the values of each layer and line. */
function dataOf({ starts, end, series, lines = [], shape }: Picture): uPlot.AlignedData {
  const layers = layersOf(series).map((layer) => layer.values);
  const times = [...starts, end].map((at) => at / 1000);
  if (shape === "points") {
    // A value is reached at the end of its window; before the first window it is 0.
    const grown = layers.map((column) => [0, ...column]);
    return [times, ...grown, ...lines.map((line) => [null, ...line.values])];
  }
  // A value holds to the end of its window, so the last one is drawn once more at the end.
  const held = (column: readonly (number | null)[]) => [...column, column.at(-1) ?? null];
  return [times, ...layers.map(held), ...lines.map((line) => held(line.values))];
}

/** Returns the index of the window that a column of uPlot belongs to. */
function windowAt({ starts, shape }: Picture, column: number): number {
  return shape === "points" ? Math.max(0, column - 1) : Math.min(column, starts.length - 1);
}

function optionsOf(
  element: Element,
  present: () => Picture,
  format: (value: number) => string,
): Omit<uPlot.Options, "width" | "height"> {
  const { series, lines = [], shape, steps } = present();
  const color = (property: string): string => themeColor(element, property);
  const surface = color("--surface");
  const quiet = color("--quiet");
  const family = getComputedStyle(element).fontFamily;
  const font = `11px ${family}`;
  const layers = layersOf(series);
  const bounds = (): [number, number] => {
    const { series, lines = [], marks = [] } = present();
    return boundsOf(layersOf(series), lines, marks);
  };
  const grid = { stroke: color("--line"), width: 1 };
  const axis = { stroke: quiet, font, grid, ticks: { ...grid, size: 5 } };
  const paths = shape === "windows" ? uPlot.paths.stepped?.({ align: 1 }) : uPlot.paths.linear?.();
  return {
    tzDate: (seconds) => uPlot.tzDate(new Date(seconds * 1000), "Etc/UTC"),
    legend: { show: false },
    padding: [10, 22, 0, 0],
    // Axes are drawn over the areas, so that the grid stays visible.
    drawOrder: ["series", "axes"] as uPlot.DrawOrderKey[],
    scales: { x: { time: true }, y: { range: bounds } },
    axes: [
      {
        ...axis,
        size: 32,
        space: 70,
        values: (_, splits, __, ___, step) => splits.map((at) => timeTick(at, step)),
      },
      {
        ...axis,
        size: 74,
        space: 34,
        incrs: TICK_STEPS[steps],
        values: (_, splits) => splits.map((value) => format(Math.abs(value))),
      },
    ],
    series: [
      {},
      ...layers.map((layer) => ({
        stroke: color(layer.color),
        fill: blend(color(layer.color), surface, FILL_SHARE),
        width: 1.5,
        points: { show: false },
        paths,
      })),
      ...lines.map((line) => ({
        stroke: color(line.color),
        width: 1.5,
        dash: [5, 4],
        spanGaps: true,
        points: { show: false },
        paths: uPlot.paths.linear?.(),
      })),
    ],
    hooks: {
      draw: [
        (chart) => {
          const { marks = [], provisionalFrom } = present();
          if (provisionalFrom !== undefined) hatchFrom(chart, provisionalFrom / 1000, quiet);
          const large = `${String(11 * devicePixelRatio)}px ${family}`;
          for (const mark of marks) drawMark(chart, mark, color(mark.color), large);
        },
      ],
    },
  };
}
