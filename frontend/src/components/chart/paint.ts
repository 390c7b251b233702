import type uPlot from "uplot";
import type { ChartMark } from "./layers";

/** Returns the present value of a custom property of the theme. */
export function themeColor(element: Element, property: string): string {
  return getComputedStyle(element).getPropertyValue(property).trim();
}

const channels = (hex: string): number[] =>
  [1, 3, 5].map((at) => Number.parseInt(hex.slice(at, at + 2), 16));

/** Mixes two colours, both `#rrggbb`: `share` (0 to 1) of `over`, and the rest of `under`. */
export function blend(over: string, under: string, share: number): string {
  const below = channels(under);
  const mixed = channels(over).map((c, i) => Math.round(c * share + (below[i] ?? 0) * (1 - share)));
  return `#${mixed.map((channel) => channel.toString(16).padStart(2, "0")).join("")}`;
}

const HATCH_PX = 7;

/** Hatches the part of a chart from a time in seconds on, which may still change. */
export function hatchFrom(chart: uPlot, fromS: number, color: string): void {
  const { ctx, bbox } = chart;
  const ratio = devicePixelRatio;
  const left = Math.max(bbox.left, chart.valToPos(fromS, "x", true));
  const right = bbox.left + bbox.width;
  if (left >= right) return;
  ctx.save();
  ctx.beginPath();
  ctx.rect(left, bbox.top, right - left, bbox.height);
  ctx.clip();
  ctx.strokeStyle = color;
  ctx.lineWidth = ratio;
  ctx.globalAlpha = 0.22;
  ctx.beginPath();
  for (let x = left - bbox.height; x < right; x += HATCH_PX * ratio) {
    ctx.moveTo(x, bbox.top + bbox.height);
    ctx.lineTo(x + bbox.height, bbox.top);
  }
  ctx.stroke();
  ctx.globalAlpha = 0.9;
  ctx.setLineDash([3 * ratio, 3 * ratio]);
  ctx.beginPath();
  ctx.moveTo(left + ratio / 2, bbox.top);
  ctx.lineTo(left + ratio / 2, bbox.top + bbox.height);
  ctx.stroke();
  ctx.restore();
}

/** Draws a level through the chart, with its name above its left end. */
export function drawMark(chart: uPlot, mark: ChartMark, color: string, font: string): void {
  const { ctx, bbox } = chart;
  const ratio = devicePixelRatio;
  const y = Math.round(chart.valToPos(mark.value, "y", true));
  ctx.save();
  ctx.strokeStyle = color;
  ctx.fillStyle = color;
  ctx.lineWidth = 1.5 * ratio;
  ctx.setLineDash([6 * ratio, 4 * ratio]);
  ctx.beginPath();
  ctx.moveTo(bbox.left, y);
  ctx.lineTo(bbox.left + bbox.width, y);
  ctx.stroke();
  ctx.font = font;
  ctx.textAlign = "left";
  ctx.textBaseline = "bottom";
  ctx.fillText(mark.label, bbox.left + 6 * ratio, y - 3 * ratio);
  ctx.restore();
}
