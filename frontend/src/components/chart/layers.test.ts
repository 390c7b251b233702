import { expect, test } from "vitest";
import { boundsOf, type ChartSeries, layersOf, TICK_STEPS } from "./layers";

const series = (key: string, values: number[], side?: "up" | "down"): ChartSeries => ({
  key,
  label: key,
  color: "--series-1",
  values,
  side,
});

test("a stack is painted from its outside, and its outline is the sum", () => {
  const layers = layersOf([series("a", [1, 2]), series("b", [10, 0]), series("c", [5, 5])]);
  expect(layers.map(({ key, values }) => [key, values])).toEqual([
    ["c", [16, 7]],
    ["b", [11, 2]],
    ["a", [1, 2]],
  ]);
});

test("two directions mirror, and neither stacks on the other", () => {
  const layers = layersOf([
    series("in", [3, 4], "up"),
    series("out", [2, 1], "down"),
    series("more out", [2, 2], "down"),
  ]);
  expect(layers.map(({ key, values }) => [key, values])).toEqual([
    ["in", [3, 4]],
    ["more out", [-4, -3]],
    ["out", [-2, -1]],
  ]);
  const [least, greatest] = boundsOf(layers, [], []);
  expect(least).toBeLessThan(-4);
  expect(greatest).toBeGreaterThan(4);
});

test("a budget above all figures is still in the picture", () => {
  const layers = layersOf([series("a", [1])]);
  const mark = { key: "m", label: "Budget", color: "--failed", value: 100 };
  expect(boundsOf(layers, [], [mark])[1]).toBeGreaterThan(100);
  expect(boundsOf([], [{ ...mark, values: [null, 7] }], [])[1]).toBeGreaterThan(7);
});

test("nothing at all still has an axis", () => {
  expect(boundsOf(layersOf([series("a", [0, 0])]), [], [])).toEqual([0, 1]);
});

test("ticks are ever farther apart", () => {
  for (const steps of Object.values(TICK_STEPS)) {
    expect(steps).toEqual([...new Set(steps)].sort((a, b) => a - b));
  }
});
