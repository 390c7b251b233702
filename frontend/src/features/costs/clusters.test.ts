import { expect, test } from "vitest";
import type { CostLine } from "@/lib/api/types";
import { meterTotal, monthCost } from "./clusters";

const line = (cluster_id: string, meter: string, amount_minor: number): CostLine => ({
  cluster_id,
  cluster: cluster_id === "cl_a" ? "orders" : "",
  meter,
  quantity: String(100 * amount_minor),
  free_quantity: "0",
  unit: "GiB",
  unit_price: "0.04",
  amount_minor,
  forecast_quantity: String(200 * amount_minor),
  forecast_minor: 2 * amount_minor,
});

const lines = [
  line("cl_a", "ingress_bytes", 5),
  line("cl_b", "ingress_bytes", 7),
  line("cl_a", "egress_bytes", 1),
];

const share = { meters: [], amount_minor: 33, billed_minor: 3, forecast_minor: 4 };
const month = {
  total_minor: 12,
  forecast_minor: 20,
  beyond_budget_minor: 30,
  by_cluster: [{ ...share, cluster_id: "cl_a", cluster: "orders" }],
};

test("a cluster has its part of what a budget leaves to be billed", () => {
  expect(monthCost(month, "cl_a")).toEqual({ soFar: 3, forecast: 4, beyond: 30 });
  expect(monthCost(month, "cl_c")).toEqual({ soFar: 0, forecast: 0, beyond: 0 });
  expect(monthCost(month)).toEqual({ soFar: 12, forecast: 20, beyond: 30 });
});

test("a meter is summed over clusters", () => {
  expect(meterTotal({ lines }, "ingress_bytes")).toEqual({ quantity: 1_200n, amount: 12 });
  expect(meterTotal({ lines }, "partition_minutes")).toEqual({ quantity: 0n, amount: 0 });
});

test("a sum has every digit, also beyond what a double holds", () => {
  const long = { ...line("cl_a", "storage_byte_minutes", 1), quantity: "9007199254740993" };
  const one = { ...long, quantity: "2" };
  const { quantity } = meterTotal({ lines: [long, one] }, "storage_byte_minutes");
  expect(quantity).toBe(9_007_199_254_740_995n);
});
