import { screen } from "@testing-library/react";
import { expect, test } from "vitest";
import { change, empty, refuse } from "@/testing/server";
import { visit } from "@/testing/visit";

const LIST = "GET /api/v1/incidents";
const OPEN = "Brokers of orders crash again and again";

test("an open incident shows its updates and the name of its cluster", async () => {
  visit("/incidents");
  const story = await screen.findByRole("article", { name: OPEN });
  expect(story).toHaveTextContent("Open");
  await expect.poll(() => story.textContent).toMatch(/orders, since 1 h ago|orders, since/);
  expect(story).toHaveTextContent("Acknowledged records are safe; clients wait.");
});

test("closed incidents come after open ones", async () => {
  change(LIST, (page) => {
    const [open] = page.items;
    if (!open) throw new Error("the example has no incident");
    const closed_at = "2026-11-21T15:59:00Z";
    const over = { id: "inc_over", title: "Over", state: "closed" as const, closed_at };
    page.items = [{ ...open, ...over, cluster_id: null, opened_at: "2026-11-21T15:50:00Z" }, open];
  });
  visit("/incidents");
  const stories = await screen.findAllByRole("article");
  expect(stories.map((story) => story.getAttribute("aria-label"))).toEqual([OPEN, "Over"]);
  expect(stories[1]).toHaveTextContent("The service as a whole");
});

test("without an incident the page says who gets mails", async () => {
  empty(LIST);
  visit("/incidents");
  expect(await screen.findByText("No incident")).toBeVisible();
});

test("a list that cannot be read shows the problem's text", async () => {
  refuse(LIST, { status: 503, code: "unavailable", detail: "The database restarts." });
  visit("/incidents");
  expect(await screen.findByRole("alert")).toHaveTextContent("The database restarts.");
});
