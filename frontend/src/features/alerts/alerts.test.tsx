import { screen } from "@testing-library/react";
import { expect, test } from "vitest";
import { change, empty, fieldError, onlySentTo, refuse, sentTo } from "@/testing/server";
import { actAs, choose, dialog, firstRow, rowsOf, visit } from "@/testing/visit";

const LIST = "GET /api/v1/alerts";
const EDIT = "PATCH /api/v1/alerts/{id}";
const ADDRESS = "/alerts?panel=alr_5xw4mzn6yt2ba3k2jq7v";

test("an alert is listed with its state, its condition and the figure now", async () => {
  visit("/alerts");
  const cells = await firstRow("Alerts");
  expect(cells.slice(0, 4)).toEqual(["Firing", "1 h ago", "Checkout falls behind", "orders"]);
  expect(cells[4]).toMatch(/checkout/);
  expect(cells.slice(5, 7)).toEqual(["1 min 33 s", "checkout"]);
});

test("firing alerts come first, and alerts that were never judged are new", async () => {
  change(LIST, (page) => {
    const [firing] = page.items;
    if (!firing) throw new Error("the example has no alert");
    page.items = [
      { ...firing, id: "alr_b", name: "B", state: "ok", fired_at: null },
      { ...firing, id: "alr_c", name: "C", state: "pending", fired_at: null },
      { ...firing, id: "alr_a", name: "A", state: "ok", evaluated_at: null, value: null },
      firing,
    ];
  });
  visit("/alerts");
  expect((await rowsOf("Alerts")).map((cells) => `${cells[0] ?? ""} ${cells[2] ?? ""}`)).toEqual([
    "Firing Checkout falls behind",
    "Pending C",
    "New A",
    "OK B",
  ]);
});

test("an alert of any group names the one that is behind, and since when", async () => {
  change(LIST, (page) => {
    page.items = page.items.map((firing) => ({
      ...firing,
      group: "",
      state: "pending",
      since: "2026-11-21T15:58:00Z",
      fired_at: null,
      fired_subject: "",
    }));
  });
  visit("/alerts");
  const cells = await firstRow("Alerts");
  expect(cells.slice(0, 2)).toEqual(["Pending", "2 min ago"]);
  expect(cells[6]).toBe("checkout");
});

test("a firing alert whose figure is back says since when, and for what it fired", async () => {
  change(LIST, (page) => {
    page.items = page.items.map((firing) => ({
      ...firing,
      group: "",
      value: "3",
      subject: "billing",
      back_since: "2026-11-21T15:58:00Z",
    }));
  });
  visit(ADDRESS);
  const panel = await dialog("Edit Checkout falls behind");
  expect(panel.getByText("Below since").nextSibling).toHaveTextContent("2 min ago");
  expect(panel.getByText("Now").nextSibling).toHaveTextContent("3 s, of billing");
  expect(panel.getByText("Fired for").nextSibling).toHaveTextContent("checkout");
});

test("without an alert the same call by REST is shown", async () => {
  empty(LIST);
  visit("/alerts");
  expect(await screen.findByText("No alert")).toBeVisible();
  expect(screen.getByTestId("code Or by REST")).toHaveTextContent("curl -X POST");
});

test("a list that is refused shows the problem's text", async () => {
  refuse(LIST, { status: 429, detail: "More than 600 requests a minute." });
  visit("/alerts");
  const shown = await screen.findByRole("alert");
  expect(shown).toHaveTextContent("The alerts could not be read");
  expect(shown).toHaveTextContent("More than 600 requests a minute.");
});

test("a new alert is made of what was typed", async () => {
  const { user, address } = visit("/alerts?panel=new");
  const panel = await dialog("New alert");
  const name = await panel.findByRole("textbox", { name: "Name" });
  const threshold = panel.getByRole("textbox", { name: "Fires above" });
  await user.clear(threshold);
  await user.type(threshold, "soon");
  await user.click(panel.getByRole("button", { name: "Create alert" }));
  expect(name).toBeInvalid();
  expect(threshold).toBeInvalid();
  expect(sentTo("POST /api/v1/alerts")).toEqual([]);

  await user.type(name, "Behind");
  await user.clear(threshold);
  await user.type(threshold, "2 min");
  await choose(user, panel, "Consumer group", "billing");
  await choose(user, panel, "Mail to", "ada@example.com");
  await user.click(panel.getByRole("button", { name: "Create alert" }));
  expect(await screen.findByText(/^The alert .* is set$/)).toBeVisible();
  expect(onlySentTo("POST /api/v1/alerts").body).toEqual({
    cluster_id: "cl_3k2jq7v5xw4mzn6yt2ba",
    kind: "group_lag_seconds",
    name: "Behind",
    group: "billing",
    threshold: "120",
    for_s: 300,
    emails: ["ada@example.com"],
  });
  expect(address()).toBe("/alerts");
});

test("a change names its version, and an error is shown at its field", async () => {
  refuse(EDIT, {
    status: 422,
    detail: "The body is not valid.",
    errors: [fieldError("/threshold", "Must be at most 31536000.")],
  });
  const { user } = visit(ADDRESS);
  const panel = await dialog("Edit Checkout falls behind");
  expect(panel.getByText("Last look")).toBeVisible();
  await user.click(panel.getByRole("button", { name: "Save" }));
  const threshold = panel.getByRole("textbox", { name: "Fires above" });
  expect(await panel.findByRole("alert")).toHaveTextContent("The alert was not saved");
  expect(threshold).toHaveAccessibleDescription(/Must be at most 31536000/);
  expect(onlySentTo(EDIT).headers.get("if-match")).toBe('"1"');
});

test("a change that came too late says that somebody else was first", async () => {
  refuse(EDIT, { status: 412, detail: "It was changed since.", code: "generation_mismatch" });
  const { user } = visit(ADDRESS);
  const panel = await dialog("Edit Checkout falls behind");
  await user.click(panel.getByRole("button", { name: "Save" }));
  expect(await panel.findByRole("alert")).toHaveTextContent("Somebody changed it meanwhile.");
});

test("an alert is removed only after its name was typed", async () => {
  const { user } = visit("/alerts");
  await user.click(await screen.findByRole("button", { name: "Remove Checkout falls behind" }));
  const asked = await dialog("Remove the alert");
  const confirm = asked.getByRole("button", { name: "Remove the alert" });
  expect(confirm).toBeDisabled();
  await user.type(asked.getByRole("textbox"), "Checkout falls behind");
  await user.click(confirm);
  expect(await screen.findByText("Checkout falls behind is removed")).toBeVisible();
  expect(sentTo("DELETE /api/v1/alerts/{id}")).toHaveLength(1);
});

test("a viewer looks at an alert, and changes none", async () => {
  actAs("viewer");
  visit(ADDRESS);
  const panel = await dialog("Checkout falls behind");
  expect(panel.getByText(/yours is viewer/)).toBeVisible();
  expect(panel.queryByRole("button", { name: "Save" })).toBeNull();
});
