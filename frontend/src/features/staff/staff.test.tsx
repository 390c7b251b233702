import { screen } from "@testing-library/react";
import { beforeEach, expect, test } from "vitest";
import { change, empty, onlySentTo, refuse } from "@/testing/server";
import { dialog, firstRow, visit } from "@/testing/visit";

const REQUESTS = "GET /api/v1/staff/limit-requests";
const ANSWER = { name: /^Answer partitions of org_/ };

beforeEach(() => {
  change("GET /api/v1/session", ({ user }) => {
    if (user) user.is_staff = true;
  });
});

test("who runs the service sees cells, clusters, operations and incidents", async () => {
  visit("/staff");
  expect((await firstRow("Cells")).join(" ")).toContain("local");
  expect((await firstRow("Clusters")).join(" ")).toContain("orders");
  expect((await firstRow("Operations")).join(" ")).toContain("Acme");
  expect((await firstRow("Incidents")).join(" ")).toContain("Brokers of orders crash");
  expect(screen.getByRole("link", { name: "Staff" })).toBeVisible();
});

test("a cell shows the stage, the rows and the bytes of a roll-up that runs", async () => {
  visit("/staff");
  const running = (await firstRow("Cells")).at(-1);
  for (const part of [
    "Roll-up of 2026-11-20: stage 4 of 6, write hours and days;",
    "18 of 64 tasks, 2\u202f750\u202f000 rows and 173 MiB read. Reported",
  ])
    expect(running).toContain(part);
});

test.each([
  ["no job runs", (jobs: { progress: unknown }[]) => jobs.splice(0), "–"],
  [
    "a job has not said how far it is",
    (jobs: { progress: unknown }[]) => jobs.forEach((job) => (job.progress = null)),
    "Roll-up of 2026-11-20: it starts. Reported",
  ],
])("a cell says that %s", async (_, edit, text) => {
  change("GET /api/v1/staff/cells", ({ items: [cell] }) => {
    if (cell) edit(cell.meter.running);
  });
  visit("/staff");
  expect((await firstRow("Cells")).at(-1)).toContain(text);
});

test("who was left out of a month is named, with the reason", async () => {
  visit("/staff/money");
  const missing = (await firstRow("Missing invoices")).join(" ");
  for (const part of ["2026-10", "Acme", "org_", "billing.vat_rates names no rate for FR"])
    expect(missing).toContain(part);
  expect((await firstRow("Months to invoice")).join(" ")).toContain("Issued");
});

test("a month that nobody gets an invoice of says why", async () => {
  change("GET /api/v1/staff/invoice-months", ({ items: [month] }) => {
    if (month) Object.assign(month, { finished_at: null, reason: "A day has no roll-up." });
  });
  visit("/staff/money");
  const row = (await firstRow("Months to invoice")).join(" ");
  expect(row).toContain("Not issued");
  expect(row).toContain("A day has no roll-up.");
});

test("a request is granted with an answer", async () => {
  const { user } = visit("/staff");
  await user.click(await screen.findByRole("button", ANSWER));
  const panel = await dialog("Answer a request");
  expect(panel.getByText("A topic for each of our 300 shops.")).toBeVisible();
  await user.type(panel.getByRole("textbox", { name: "Answer" }), "Gladly.");
  await user.click(panel.getByRole("button", { name: /^Grant 10/ }));
  await expect
    .poll(() => onlySentTo("POST /api/v1/staff/limit-requests/{id}:grant").body)
    .toEqual({ answer: "Gladly." });
});

test("a refusal needs an answer", async () => {
  const path = "POST /api/v1/staff/limit-requests/{id}:refuse";
  refuse(path, { status: 409, code: "answered", detail: "Somebody answered it." });
  const { user } = visit("/staff");
  await user.click(await screen.findByRole("button", ANSWER));
  const panel = await dialog("Answer a request");
  const no = panel.getByRole("button", { name: "Refuse" });
  expect(no).toBeDisabled();
  await user.type(panel.getByRole("textbox", { name: "Answer" }), "Split it.");
  await user.click(no);
  expect(await panel.findByRole("alert")).toHaveTextContent("Somebody answered it.");
});

test("what was answered is not answered again", async () => {
  change(REQUESTS, ({ items: [request] }) => {
    if (request) request.state = "granted";
  });
  visit("/staff");
  const answer = await screen.findByRole("button", ANSWER);
  expect(answer).toHaveAccessibleDescription("It is answered.");
});

test("each part that is empty or cannot be read says so by itself", async () => {
  empty(REQUESTS);
  refuse("GET /api/v1/staff/cells", { status: 503, code: "unavailable", detail: "Not now." });
  visit("/staff");
  expect(await screen.findByText("No request is open.")).toBeVisible();
  expect(await screen.findByText("Cells could not be read")).toBeVisible();
  expect((await firstRow("Clusters")).join(" ")).toContain("orders");
});
