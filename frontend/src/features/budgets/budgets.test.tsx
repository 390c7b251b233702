import { screen } from "@testing-library/react";
import { expect, test } from "vitest";
import { change, empty, onlySentTo, refuse, sentTo } from "@/testing/server";
import { actAs, dialog, firstRow, visit } from "@/testing/visit";

const LIST = "GET /api/v1/budgets";
const CREATE = "POST /api/v1/budgets";

test("a budget is listed with what is spent of it", async () => {
  visit("/usage/budgets");
  expect((await firstRow("Budgets")).slice(0, 5)).toEqual([
    "Team",
    "Warned",
    "$26.13 of $50.00",
    "50, 80 and 100 %",
    "Suspends produce and fetch",
  ]);
});

test("a budget that has traffic refused says so", async () => {
  change(LIST, ({ items: [budget] }) => {
    if (!budget) throw new Error("the example has no budget");
    Object.assign(budget, { state: "exceeded", suspended_at: "2026-11-21T15:30:00Z" });
  });
  visit("/usage/budgets");
  expect((await firstRow("Budgets"))[1]).toBe("Exceeded: traffic is refused");
});

test("without a budget the same call by REST is shown", async () => {
  empty(LIST);
  visit("/usage/budgets");
  expect(await screen.findByText("No budget")).toBeVisible();
  expect(screen.getByTestId("code Or by REST")).toHaveTextContent("/api/v1/budgets");
});

test("a list that is refused shows the problem's text", async () => {
  refuse(LIST, { status: 403, detail: "Your role is developer." });
  visit("/usage/budgets");
  expect(await screen.findByRole("alert")).toHaveTextContent("Your role is developer.");
});

test("a budget is made of what was typed, in minor units", async () => {
  const { user } = visit("/usage/budgets?panel=new");
  const panel = await dialog("New budget");
  await user.click(await panel.findByRole("button", { name: "Create budget" }));
  expect(panel.getByText("Name the budget")).toBeVisible();
  expect(panel.getByText("Enter an amount")).toBeVisible();
  expect(sentTo(CREATE)).toEqual([]);

  await user.type(panel.getByRole("textbox", { name: "Name" }), "Team");
  await user.type(panel.getByRole("textbox", { name: "Amount a month, USD" }), "75.50");
  await user.click(panel.getByRole("button", { name: "Create budget" }));
  expect(await screen.findByText("The budget Team holds")).toBeVisible();
  const thresholds = [50, 80, 100];
  const body = { name: "Team", amount_minor: 7550, thresholds, action: "notify" };
  expect(onlySentTo(CREATE).body).toEqual(body);
});

test("a budget that stops clients is explained and has to be understood", async () => {
  const { user } = visit("/usage/budgets?panel=new");
  const panel = await dialog("New budget");
  await user.type(await panel.findByRole("textbox", { name: "Name" }), "Hard stop");
  await user.type(panel.getByRole("textbox", { name: "Amount a month, USD" }), "0.50");
  await user.click(panel.getByRole("radio", { name: /suspend produce and fetch/ }));
  expect(panel.getByText(/Storage and partitions go on being billed/)).toBeVisible();
  expect(
    panel.getByText(
      /\$0\.60 are spent already, and stay billed: produce and fetch are suspended at once/,
    ),
  ).toBeVisible();
  await user.click(panel.getByRole("button", { name: "Create budget" }));
  expect(panel.getByText("Confirm it before saving")).toBeVisible();
  expect(sentTo(CREATE)).toEqual([]);
  await user.click(panel.getByRole("checkbox"));
  await user.click(panel.getByRole("button", { name: "Create budget" }));
  await expect.poll(() => sentTo(CREATE)[0]?.body).toMatchObject({ action: "suspend" });
});

test("a budget that throttles has a rate, and says that all is billed", async () => {
  const { user } = visit("/usage/budgets?panel=new");
  const panel = await dialog("New budget");
  await user.type(await panel.findByRole("textbox", { name: "Name" }), "Slow");
  await user.type(panel.getByRole("textbox", { name: "Amount a month, USD" }), "50");
  await user.click(panel.getByRole("radio", { name: /slow traffic down/ }));
  expect(panel.getByText(/Nothing is refused\. All that is produced/)).toBeVisible();
  const rate = panel.getByRole("textbox", { name: /KiB a second/ });
  expect(rate).toHaveValue("1024");
  await user.clear(rate);
  await user.type(rate, "63");
  await user.click(panel.getByRole("checkbox"));
  await user.click(panel.getByRole("button", { name: "Create budget" }));
  expect(panel.getByText(/64 or more/)).toBeVisible();
  expect(sentTo(CREATE)).toEqual([]);
  await user.clear(rate);
  await user.type(rate, "512");
  await user.click(panel.getByRole("button", { name: "Create budget" }));
  const wish = { action: "throttle", throttle_bytes_per_s: 524_288 };
  await expect.poll(() => sentTo(CREATE)[0]?.body).toMatchObject(wish);
});

test("an edited budget shows what happened to it", async () => {
  const { user } = visit("/usage/budgets?panel=bud_5xw4mzn6yt2ba3k2jq7v");
  const panel = await dialog("Edit Team");
  expect(await panel.findByText(/\$25\.03 of \$50\.00 were spent/)).toBeVisible();
  const amount = panel.getByRole("textbox", { name: "Amount a month, USD" });
  expect(amount).toHaveValue("50.00");
  await user.clear(amount);
  await user.type(amount, "60");
  await user.click(panel.getByRole("checkbox"));
  await user.click(panel.getByRole("button", { name: "Save" }));
  await expect
    .poll(() => sentTo("PATCH /api/v1/budgets/{id}")[0]?.body)
    .toMatchObject({ amount_minor: 6000 });
});

test("a budget that was set under another promise says until when it holds", async () => {
  change(LIST, ({ items: [budget] }) => {
    if (!budget) throw new Error("the example has no budget");
    budget.covers_all_until = "2026-11";
  });
  visit("/usage/budgets?panel=bud_5xw4mzn6yt2ba3k2jq7v");
  const panel = await dialog("Edit Team");
  expect(
    await panel.findByText(/Through November 2026 this budget refuses producers/),
  ).toBeVisible();
});

test("a budget is removed only after its name was typed", async () => {
  const { user } = visit("/usage/budgets");
  await user.click(await screen.findByRole("button", { name: "Remove Team" }));
  const asked = await dialog("Remove the budget");
  expect(asked.getByText(/clients are served again/)).toBeVisible();
  await user.type(asked.getByRole("textbox"), "team{Enter}");
  expect(sentTo("DELETE /api/v1/budgets/{id}")).toEqual([]);
  await user.clear(asked.getByRole("textbox"));
  await user.type(asked.getByRole("textbox"), "Team{Enter}");
  expect(await screen.findByText("Team is removed")).toBeVisible();
});

test("a developer neither makes nor removes a budget", async () => {
  actAs("developer");
  visit("/usage/budgets");
  const make = await screen.findByRole("button", { name: "New budget" });
  expect(make).toHaveAttribute("aria-disabled", "true");
  const remove = await screen.findByRole("button", { name: "Remove Team" });
  expect(remove).toHaveAccessibleDescription(/yours is developer/);
});
