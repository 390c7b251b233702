import { screen } from "@testing-library/react";
import { expect, test } from "vitest";
import { change, empty, onlySentTo, refuse, sentTo } from "@/testing/server";
import { actAs, CLUSTER, dialog, firstRow, visit } from "@/testing/visit";

const LIST = "GET /api/v1/limits";
const ASK = "POST /api/v1/limit-requests";
const MORE = { name: "Ask for more: partitions" };

test("a limit is listed with what is used, and what happens there", async () => {
  visit("/settings/limits");
  const cells = await firstRow("Limits");
  expect(cells[0]).toBe("Partitions");
  expect(cells[2]).toBe("312");
  expect(cells[4]).toMatch(/^Creating another one is refused/);
});

test("a request says what came of it", async () => {
  change("GET /api/v1/limit-requests", ({ items: [request] }) => {
    if (request) Object.assign(request, { state: "refused", answer: "Please split it." });
  });
  visit("/settings/limits");
  const cells = await firstRow("Requests");
  expect(cells[1]).toBe("orders");
  expect(cells.slice(3, 5)).toEqual(["Refused", "Please split it."]);
});

test("more is asked for with a reason", async () => {
  const { user } = visit(`${CLUSTER}/settings`);
  await user.click(await screen.findByRole("button", MORE));
  const panel = await dialog("Ask for more: Partitions");
  const amount = panel.getByRole("textbox", { name: "New limit, partitions" });
  await user.clear(amount);
  await user.type(amount, "10");
  await user.click(panel.getByRole("button", { name: "Send the request" }));
  expect(panel.getByText(/^More than 4/)).toBeVisible();
  expect(panel.getByText("Say what it is needed for")).toBeVisible();
  expect(sentTo(ASK)).toEqual([]);
  await user.clear(amount);
  await user.type(amount, "10000");
  await user.type(panel.getByRole("textbox", { name: "What for" }), "300 shops");
  await user.click(panel.getByRole("button", { name: "Send the request" }));
  expect(await screen.findByText(/^The request is sent\./)).toBeVisible();
  expect(onlySentTo(ASK).body).toEqual({
    limit: "partitions",
    cluster_id: "cl_3k2jq7v5xw4mzn6yt2ba",
    wanted: 10_000,
    reason: "300 shops",
  });
});

test("a limit that is the same for everybody is not raised", async () => {
  change(LIST, ({ items: [limit] }) => {
    if (limit) limit.raisable = false;
  });
  visit("/settings/limits");
  const more = await screen.findByRole("button", MORE);
  expect(more).toHaveAccessibleDescription("This limit is the same for everybody.");
});

test("a list that is refused shows the problem's text, and an empty one says so", async () => {
  refuse(LIST, { status: 503, code: "unavailable", detail: "The counts cannot be read now." });
  visit("/settings/limits");
  expect(await screen.findByText(/The counts cannot be read now\./)).toBeVisible();
});

test("a service without limits says so", async () => {
  empty(LIST);
  visit("/settings/limits");
  expect(await screen.findByText("This service limits nothing.")).toBeVisible();
});

test("a developer asks for no more", async () => {
  actAs("developer");
  visit("/settings/limits");
  const more = await screen.findByRole("button", MORE);
  expect(more).toHaveAccessibleDescription(/yours is developer/);
});
