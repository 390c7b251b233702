import { expect, test } from "vitest";
import type { InvoiceLine } from "@/lib/api/types";
import { rowsSearch, unitsOf } from "./lines";

const GIB = 1024 ** 3;
const line: InvoiceLine = {
  id: "il_1",
  kind: "usage",
  meter: "egress_bytes",
  cluster_id: "cl_1",
  cluster: "orders",
  description: "Data out",
  quantity: String(12.5 * GIB),
  unit: "byte",
  free_quantity: String(10 * GIB),
  unit_price: "0.04",
  price_unit: "GiB",
  price_unit_size: GIB,
  amount_minor: 10,
  usage_row_ids: ["ur_1"],
};

test("a line leads to the days of its month, cluster and meter", () => {
  expect(rowsSearch({ month: "2026-12" }, line)).toEqual({
    from: "2026-12-01",
    to: "2027-01-01",
    cluster: "cl_1",
    meter: "egress_bytes",
    billed: true,
  });
});

test("a line without usage leads nowhere", () => {
  expect(rowsSearch({ month: "2026-12" }, { ...line, usage_row_ids: [] })).toBeNull();
});

test("quantities are in the unit that has the price", () => {
  expect(unitsOf(line, line.quantity)).toBe("12.5 GiB");
  expect(unitsOf(line, line.free_quantity)).toBe("10.0 GiB");
  const month = { ...line, price_unit: "GiB-month", price_unit_size: 4 };
  expect(unitsOf(month, "10")).toBe("2.5 GiB-months");
  expect(unitsOf({ ...line, quantity: null, price_unit_size: null }, null)).toBe("–");
});
