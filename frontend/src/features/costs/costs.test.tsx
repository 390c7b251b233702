import { screen, within } from "@testing-library/react";
import { expect, test } from "vitest";
import { change, refuse, sentTo } from "@/testing/server";
import { firstRow, visit } from "@/testing/visit";

const COSTS = "GET /api/v1/costs";

test("a month has what it costs so far, and its forecast", async () => {
  visit("/usage/costs");
  const soFar = await screen.findByTitle("The rows behind it");
  expect(soFar).toHaveTextContent("$0.60");
  expect(soFar.getAttribute("href")).toMatch(/^\/usage\?from=.*2026-11-01/);
  expect(screen.getByText("$0.97")).toBeVisible();
  expect(await firstRow("Cost by cluster")).toEqual(["orders", "$0.60", "$0.60"]);
});

test("each amount leads to the rows that it is the sum of", async () => {
  visit("/usage/costs");
  await firstRow("Cost by cluster");
  const table = within(screen.getByRole("table", { name: "Cost by cluster" }));
  const amount = table.getByRole("link", { name: "$0.60" });
  expect(amount.getAttribute("href")).toContain("meter=ingress_bytes");
  expect(amount).toHaveAttribute("title", expect.stringMatching(/26\s843\s545\s600/));
});

test("costs are split by topic and by credential", async () => {
  const { user, address } = visit("/usage/costs");
  await firstRow("Cost by cluster");
  await user.click(screen.getByRole("radio", { name: "Topic" }));
  await expect.poll(address).toBe("/usage/costs?by=topic");
  expect((await firstRow(/topic/i)).join(" ")).toContain("payments");
  await user.click(screen.getByRole("radio", { name: "Credential" }));
  await expect.poll(address).toBe("/usage/costs?by=principal");
});

test("a month within what is free says so", async () => {
  change(COSTS, (costs) => Object.assign(costs, { total_minor: 0, by_topic: [] }));
  visit("/usage/costs?by=topic");
  expect(await screen.findByText("There is nothing to pay")).toBeVisible();
});

test("what slipped past a suspending budget is shown as not billed", async () => {
  change(COSTS, (costs) => (costs.beyond_budget_minor = 12));
  visit("/usage/costs");
  expect(await screen.findByText("slipped past a suspending budget")).toBeVisible();
  expect(screen.getByText("$0.12")).toBeVisible();
});

test("another month is read on demand, and is part of the address", async () => {
  const { user, address } = visit("/usage/costs");
  await firstRow("Cost by cluster");
  await user.click(screen.getByRole("button", { name: "The month before" }));
  await expect.poll(address).toBe("/usage/costs?month=2026-10");
  await expect.poll(() => sentTo(COSTS).map(({ query }) => query.month)).toContain("2026-09");
});

test("a month that cannot be read shows the problem's text", async () => {
  refuse(COSTS, { status: 403, detail: "Your role is developer." });
  visit("/usage/costs");
  expect((await screen.findAllByText(/Your role is developer\./))[0]).toBeVisible();
});

test("prices are shown with what is free each month", async () => {
  visit("/prices");
  const cells = await firstRow("Prices");
  expect(cells[0]).toBe("In");
  expect(cells.slice(2)).toEqual(["$0.04 per GiB", "10 GiB"]);
});
