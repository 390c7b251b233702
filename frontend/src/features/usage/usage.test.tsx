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
  const tile = screen.getByRole("link", { name: /^In: show the rows of/ });
  expect(tile).toHaveTextContent("100 MiB");
  expect(tile.getAttribute("href")).toMatch(/meter=ingress_bytes&billed=true#rows$/);
  const [sums, rows] = [sentTo(USAGE).find(({ query }) => query.group_by), sentTo(USAGE).at(-1)];
  expect(sums?.query).toMatchObject({ granularity: "hour", from: "2026-11-20T17:00:00.000Z" });
  expect(rows?.query.from).toBe(sums?.query.from);
});

/** Has the API answer with sums of which most is the service's own, as the request asks. */
function answerUnbilled(): void {
  answer(USAGE, ({ query }) => {
    const page = exampleOf(USAGE, "ASumByCluster");
    const [first] = page.items;
    if (!first) throw new Error("the example has no row");
    const out = { ...first, meter: "egress_bytes" as const, cluster_id: null };
    const own = { ...out, billed: false, quantity: "1035993088" };
    const billed = { ...out, provisional: false, quantity: "1782580" };
    if (query.billed !== "false") return { ...page, items: [billed, own] };
    return { ...page, items: [{ ...own, principal: "User:__freshet" }] };
  });
}

test("what is not billed is apart from what is, with who caused it", async () => {
  answerUnbilled();
  const { user, address } = visit("/usage?range=24h");
  const tile = await screen.findByRole("link", { name: /^Out: show the rows of/ });
  expect(tile).toHaveTextContent("1.7 MiB");
  const apart = screen.getByRole("link", { name: "988 MiB more" });
  await expect
    .poll(() => apart.parentElement?.textContent)
    .toBe("988 MiB more, not billed: Freshet itself");
  expect((await firstRow("Sums of the rows")).slice(0, 3)).toEqual(["Out", "Billed", "1.7 MiB"]);
  await user.click(apart);
  await expect.poll(address).toContain("meter=egress_bytes&billed=false");
  const sums = await firstRow("Sums of the rows");
  expect(sums[1]).toBe("Not billed: Freshet itself");
  expect(sums[3]).toMatch(/^1\s035\s993\s088 bytes$/);
  expect(sentTo(USAGE).at(-1)?.query).toMatchObject({ meter: "egress_bytes", billed: "false" });
});

test("a filter for what belongs to no credential is visible, and can be left", async () => {
  answerUsage();
  const { user, address } = visit("/usage?from=2026-11-01&to=2026-12-01&principal=&billed=true");
  await loadedTable("Usage rows");
  expect(screen.getByRole("radio", { name: "Billed" })).toBeChecked();
  const rows = sentTo(USAGE).find(({ query }) => query.group_by === undefined);
  expect(rows?.query).toMatchObject({ principal: "", billed: "true", granularity: "day" });
  await user.click(screen.getByRole("button", { name: "Leave: No credential" }));
  await expect.poll(address).not.toContain("principal");
});

test("the bytes that are stored now are beside those of the range", async () => {
  answerUsage();
  visit("/usage");
  expect(await screen.findByText("12.4 GiB at 21 Nov, 14:57 UTC")).toBeVisible();
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
