import { screen } from "@testing-library/react";
import { expect, test } from "vitest";
import { exampleOf } from "@/testing/contract";
import { answer, change, empty, refuse, sentTo } from "@/testing/server";
import { dialog, firstRow, loadedTable, rowsOf, visit } from "@/testing/visit";

const USAGE = "GET /api/v1/usage";
const ROW = "GET /api/v1/usage/rows/{id}";
const PANEL = "/usage?panel=ur_4x7mzq2nk5vw3jt6ybac";

/** Has the API answer with rows or with sums, as the request asks. */
function answerUsage(count = 1): void {
  answer(USAGE, ({ query }) => {
    if (query.group_by !== undefined) return exampleOf(USAGE, "ASumByCluster");
    const page = exampleOf(USAGE);
    const [first] = page.items;
    if (!first) throw new Error("the example has no row");
    const items = Array.from({ length: count }, (_, at) => ({ ...first, id: `ur_${String(at)}` }));
    return { ...page, items };
  });
}

test("sums and the rows behind them are read of one range", async () => {
  answerUsage();
  visit("/usage?range=24h");
  // The names are read at the same time as the rows.
  await expect.poll(async () => (await firstRow("Usage rows"))[4]).toBe("checkout");
  const cells = await firstRow("Usage rows");
  expect(cells.slice(1, 6)).toEqual(["In", "orders", "payments", "checkout", "68.0 GiB"]);
  expect(screen.getByRole("link", { name: /^In: show the rows of/ })).toHaveTextContent("100 MiB");
  const [sums, rows] = [sentTo(USAGE).find(({ query }) => query.group_by), sentTo(USAGE).at(-1)];
  expect(sums?.query).toMatchObject({ granularity: "hour", from: "2026-11-20T17:00:00.000Z" });
  expect(rows?.query.from).toBe(sums?.query.from);
});

test("many rows are drawn a hundred at a time", async () => {
  answerUsage(150);
  const { user } = visit("/usage");
  expect(await rowsOf("Usage rows")).toHaveLength(100);
  await user.click(screen.getByRole("button", { name: "Show 50 more of 50" }));
  expect(await rowsOf("Usage rows")).toHaveLength(150);
});

test("usage is split by topic, which is part of the address", async () => {
  answerUsage();
  const { user, address } = visit("/usage");
  await loadedTable("Usage rows");
  await user.click(screen.getByRole("radio", { name: "Topic" }));
  await expect.poll(address).toContain("by=topic");
  await loadedTable("Usage by topic");
  expect(sentTo(USAGE).some(({ query }) => query.group_by === "topic")).toBe(true);
});

test("a time without usage says what usage is", async () => {
  empty(USAGE);
  visit("/usage");
  expect(await screen.findByText("No usage in this time")).toBeVisible();
});

test("usage that cannot be read shows the problem's text", async () => {
  refuse(USAGE, { status: 422, code: "invalid", detail: "A range of at most 400 days." });
  visit("/usage");
  expect((await screen.findAllByText(/A range of at most 400 days\./))[0]).toBeVisible();
});

test("a published row opens what it was made of", async () => {
  answerUsage();
  visit(PANEL);
  const panel = await dialog("Usage row");
  expect(await panel.findByText("68.0 GiB")).toBeVisible();
  expect(panel.getByText(/73\s014\s444\s032/)).toBeVisible();
  expect(panel.getByText("run_7m4nq2xk5vw3jzt6ybac")).toBeVisible();
  expect(panel.getByText(/^v1\/cell=local\/day=2026-11-20/)).toBeVisible();
  expect(panel.getByRole("cell", { name: "120–164" })).toBeVisible();
});

test("a row of a run that was corrected says so", async () => {
  answerUsage();
  change(ROW, (row) => (row.run.current = false));
  visit(PANEL);
  const panel = await dialog("Usage row");
  expect(await panel.findByText("A newer run corrected the day.")).toBeVisible();
});

test("a row that is not there shows the problem's text", async () => {
  answerUsage();
  refuse(ROW, { status: 404, code: "not_found", detail: "There is no such row." });
  visit(PANEL);
  const panel = await dialog("Usage row");
  expect(await panel.findByRole("alert")).toHaveTextContent("There is no such row.");
});
