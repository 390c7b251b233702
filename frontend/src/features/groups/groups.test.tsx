import { screen, within } from "@testing-library/react";
import { expect, test } from "vitest";
import { change, empty, onlySentTo, refuse, sentTo, stall } from "@/testing/server";
import { actAs, choose, CLUSTER, dialog, firstRow, loadedTable, visit } from "@/testing/visit";

const GROUP = `${CLUSTER}/groups/billing`;
const LIST = "GET /api/v1/clusters/{cluster_id}/groups";
const ONE = "GET /api/v1/clusters/{cluster_id}/groups/{group}";
const RESET = "POST /api/v1/clusters/{cluster_id}/groups/{group}/reset-offsets";
const DELETE = "DELETE /api/v1/clusters/{cluster_id}/groups/{group}";

/** Has the API answer that the group has no members, so that it can be reset and deleted. */
function disconnect(): void {
  change(ONE, (group) => Object.assign(group, { state: "Empty", members: [] }));
}

test("groups are listed with their lag in records and in time", async () => {
  visit(`${CLUSTER}/groups`);
  expect(await firstRow("Consumer groups")).toEqual(["billing", "Stable", "1", "10", "3 s"]);
});

test("lag that is not known is not zero", async () => {
  change(LIST, ({ items: [group] }) => {
    if (group) Object.assign(group, { lag: null, lag_seconds: null });
  });
  visit(`${CLUSTER}/groups`);
  const cells = await firstRow("Consumer groups");
  expect(cells[3]).not.toBe("0");
  expect(cells[4]).not.toMatch(/^0/);
});

test("without a group it is said when one appears", async () => {
  empty(LIST);
  visit(`${CLUSTER}/groups`);
  expect(await screen.findByText("No consumer group yet")).toBeVisible();
});

test("a group that is not there shows the problem's text", async () => {
  refuse(ONE, { status: 404, code: "not_found", detail: "There is no such group." });
  visit(GROUP);
  const alert = await screen.findByRole("alert");
  expect(alert).toHaveTextContent("The group could not be read");
  expect(alert).toHaveTextContent("There is no such group.");
});

test("a group's page names which member reads which partition", async () => {
  visit(GROUP);
  expect((await firstRow("Lag by partition")).slice(0, 5)).toEqual([
    "payments",
    "0",
    "90",
    "100",
    "10",
  ]);
  expect((await firstRow("Members"))[0]).toBe("billing-1");
});

test("a group without an offset says so, where its partitions would be", async () => {
  change(ONE, (group) => {
    group.partitions = [];
    group.members = [];
  });
  visit(GROUP);
  expect(await screen.findByText("No offset is committed")).toBeVisible();
});

test("a group of a sleeping cluster says when it was seen", async () => {
  change(ONE, (group) => (group.sampled_at = "2026-11-21T15:30:00Z"));
  visit(GROUP);
  expect(await screen.findByText(/this was seen/)).toHaveTextContent("30 min ago");
});

test("a reset is looked at before it is applied, and is undone from its notice", async () => {
  disconnect();
  const { user } = visit(`${GROUP}?panel=reset`);
  const panel = await dialog("Reset offsets");
  await user.click(panel.getByRole("button", { name: "See what would change" }));
  const plan = within(await panel.findByRole("table", { name: "What would change" }));
  expect(plan.getByText("−10")).toBeVisible();
  expect(sentTo(RESET).map(({ body }) => body)).toEqual([{ to: "earliest", dry_run: true }]);

  await user.click(panel.getByRole("button", { name: "Apply to one partition" }));
  expect(await screen.findByText("The offsets are set")).toBeVisible();
  expect(sentTo(RESET)[1]?.body).toEqual({ to: "earliest", dry_run: false });

  await user.click(screen.getByRole("button", { name: "Undo" }));
  expect(await screen.findByText("The offsets are as they were")).toBeVisible();
  expect(sentTo(RESET)[2]?.body).toEqual({
    to: "offset",
    offset: "90",
    topics: [{ topic: "payments", partitions: [0] }],
    dry_run: false,
  });
});

test("a number that cannot be is not looked at", async () => {
  disconnect();
  const { user } = visit(`${GROUP}?panel=reset`);
  const panel = await dialog("Reset offsets");
  await user.click(panel.getByRole("radio", { name: "An offset" }));
  const number = panel.getByRole("textbox", { name: "Number" });
  await user.type(number, "-1");
  expect(panel.getByText("Offsets begin at 0")).toBeVisible();
  expect(panel.getByRole("button", { name: "See what would change" })).toBeDisabled();
  await user.clear(number);
  await user.type(number, "42");
  await choose(user, panel, "Topics", "payments");
  await user.click(panel.getByRole("button", { name: "See what would change" }));
  await panel.findByRole("table", { name: "What would change" });
  expect(onlySentTo(RESET).body).toEqual({
    to: "offset",
    offset: "42",
    topics: [{ topic: "payments" }],
    dry_run: true,
  });
});

test("a reset that Kafka refuses says why and keeps the choice", async () => {
  refuse(RESET, { status: 409, code: "group_not_empty", detail: "A member is connected." });
  const { user } = visit(`${GROUP}?panel=reset`);
  const panel = await dialog("Reset offsets");
  expect(panel.getByText(/1 are connected now/)).toBeVisible();
  await user.click(panel.getByRole("radio", { name: "The end: skip what is there" }));
  await user.click(panel.getByRole("button", { name: "See what would change" }));
  expect(await panel.findByRole("alert")).toHaveTextContent("A member is connected.");
  expect(panel.getByRole("radio", { name: "The end: skip what is there" })).toBeChecked();
});

test("a group with members is not deleted, one without is after its name was typed", async () => {
  disconnect();
  const { user, address } = visit(GROUP);
  await user.click(await screen.findByRole("button", { name: "Delete" }));
  const asked = await dialog("Delete the group");
  await user.type(asked.getByRole("textbox"), "billin{Enter}");
  expect(sentTo(DELETE)).toEqual([]);
  await user.type(asked.getByRole("textbox"), "g{Enter}");
  await expect.poll(address).toBe(`${CLUSTER}/groups`);
  expect(onlySentTo(DELETE).query).toEqual({ wake: "true" });
});

test("a deleted group's page is left at once, though the list answers late", async () => {
  disconnect();
  const { user, address } = visit(GROUP);
  await user.click(await screen.findByRole("button", { name: "Delete" }));
  const asked = await dialog("Delete the group");
  stall(LIST);
  refuse(ONE, { status: 404, code: "not_found", detail: "There is no such group." });
  await user.type(asked.getByRole("textbox"), "billing{Enter}");
  expect(await screen.findByText("billing is deleted")).toBeVisible();
  await expect.poll(address).toBe(`${CLUSTER}/groups`);
});

test("who is connected keeps a group from being deleted", async () => {
  visit(GROUP);
  const remove = await screen.findByRole("button", { name: "Delete" });
  expect(remove).toHaveAccessibleDescription(/Kafka deletes no group/);
});

test("a viewer resets nothing", async () => {
  actAs("viewer");
  visit(`${GROUP}?panel=reset`);
  await loadedTable("Lag by partition");
  const reset = screen.getByRole("button", { name: "Reset offsets" });
  expect(reset).toHaveAccessibleDescription(/yours is viewer/);
  expect(screen.queryByRole("dialog")).toBeNull();
});
