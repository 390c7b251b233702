import { screen, within } from "@testing-library/react";
import { expect, test } from "vitest";
import { change, refuse, sentTo } from "@/testing/server";
import { firstRow, visit } from "@/testing/visit";

const COSTS = "GET /api/v1/costs";
const MONTH = "/usage?from=2026-11-01&to=2026-12-01";
const CLUSTER = "cluster=cl_3k2jq7v5xw4mzn6yt2ba";

/** Returns the addresses to which the links of the first row of a table lead. */
async function linksOf(name: string): Promise<(string | null)[]> {
  await firstRow(name);
  const [, row] = within(screen.getByRole("table", { name })).getAllByRole("row");
  if (!row) throw new Error("the table has no row");
  return within(row)
    .getAllByRole("link")
    .map((link) => link.getAttribute("href"));
}

test("a month has what it costs so far, and its forecast", async () => {
  visit("/usage/costs");
  const soFar = await screen.findByTitle("The rows behind it");
  expect(soFar).toHaveTextContent("$0.60");
  expect(soFar).toHaveAttribute("href", `${MONTH}&billed=true#rows`);
  expect(screen.getByText("$0.97")).toBeVisible();
  expect(await firstRow("Cost by cluster")).toEqual(["orders", "$0.60", "$0.60"]);
});

test("each amount leads to the rows that it is the sum of", async () => {
  visit("/usage/costs");
  await firstRow("Cost by cluster");
  const table = within(screen.getByRole("table", { name: "Cost by cluster" }));
  const [amount] = table.getAllByRole("link", { name: "$0.60" });
  expect(await linksOf("Cost by cluster")).toEqual([
    `${MONTH}&${CLUSTER}&billed=true#rows`,
    `${MONTH}&${CLUSTER}&billed=true&meter=ingress_bytes#rows`,
    `${MONTH}&${CLUSTER}&billed=true#rows`,
  ]);
  expect(amount).toHaveAttribute("title", expect.stringMatching(/26\s843\s545\s600/));
});

test("a topic leads to its rows", async () => {
  visit("/usage/costs?by=topic");
  const topic = "topic=5f0c9d0e1b7a4c63a2d5e8f10b94c7d6";
  expect((await linksOf("Cost by topic"))[0]).toBe(`${MONTH}&${CLUSTER}&${topic}&billed=true#rows`);
});

test("what no credential causes leads to the rows without one", async () => {
  change(COSTS, ({ by_principal: [share] }) => share && Object.assign(share, { principal: "" }));
  visit("/usage/costs?by=principal");
  expect((await linksOf("Cost by credential"))[0]).toBe(
    `${MONTH}&${CLUSTER}&principal=&billed=true#rows`,
  );
});

test("a day leads to its rows", async () => {
  visit("/usage/costs?by=day");
  const links = await linksOf("Cost by day");
  expect((await firstRow("Cost by day"))[0]).toBe("20 Nov 2026");
  const day = "/usage?from=2026-11-20&to=2026-11-21&billed=true";
  expect(links).toEqual([`${day}#rows`, `${day}&meter=ingress_bytes#rows`, `${day}#rows`]);
});

test("the rest of very many topics leads nowhere, since it has no name", async () => {
  change(COSTS, ({ by_topic: [share] }) => {
    if (share)
      Object.assign(share, { cluster_id: null, cluster: null, topic_id: null, topic: null });
  });
  visit("/usage/costs?by=topic");
  expect((await firstRow("Cost by topic"))[0]).toBe("All others");
  expect(
    within(screen.getByRole("table", { name: "Cost by topic" })).queryByRole("link"),
  ).toBeNull();
});

test("what is stored now is shown in bytes, for the present month", async () => {
  change("GET /api/v1/prices", ({ prices: [price] }) => {
    if (price) Object.assign(price, { meter: "storage_byte_minutes", free_unit: "GiB-month" });
  });
  visit("/usage/costs");
  expect(await screen.findByText("12.4 GiB now (21 Nov, 14:57 UTC)")).toBeVisible();
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

test("what is left of a trial is shown, and that it is the end of traffic", async () => {
  change(COSTS, (costs) => (costs.trial_left = { ingress_bytes: String(3 * 1024 ** 3) }));
  visit("/usage/costs");
  expect(await screen.findByText("This is a trial.")).toBeVisible();
  expect(screen.getByText("Left of it: In: 3.0 GiB.")).toBeVisible();
  expect(screen.getByRole("link", { name: "Add a card" })).toHaveAttribute("href", "/billing");
});

test("a trial that is used up says that clusters refuse traffic", async () => {
  change(COSTS, (costs) => (costs.trial_left = { ingress_bytes: "0" }));
  visit("/usage/costs");
  expect(await screen.findByText("The trial is used up.")).toBeVisible();
});

test("an organization without a trial reads that it needs a card", async () => {
  change(COSTS, (costs) => (costs.trial_left = {}));
  visit("/usage/costs");
  expect(await screen.findByText("The organization has no trial.")).toBeVisible();
});

test("with a card no trial is shown, nor of an earlier month", async () => {
  visit("/usage/costs");
  await firstRow("Cost by cluster");
  expect(screen.queryByRole("link", { name: "Add a card" })).toBeNull();
  change(COSTS, (costs) => (costs.trial_left = { ingress_bytes: "0" }));
  visit("/usage/costs?month=2026-10");
  await expect.poll(() => screen.queryAllByText("The trial is used up.")).toHaveLength(0);
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

test("whose the free quantities are depends on the payment method", async () => {
  visit("/prices");
  expect(await screen.findByText(/Free quantities are for a card/)).toBeVisible();
});

test("without a card the free quantities are a trial", async () => {
  change("GET /api/v1/payment-method", (method) => Object.assign(method, { card: null }));
  visit("/prices");
  expect(await screen.findByText(/has the free quantities once, as its trial/)).toBeVisible();
});

test("prices are shown with what is free each month", async () => {
  visit("/prices");
  const cells = await firstRow("Prices");
  expect(cells[0]).toBe("In");
  expect(cells.slice(2)).toEqual(["$0.04 per GiB", "10 GiB"]);
});
