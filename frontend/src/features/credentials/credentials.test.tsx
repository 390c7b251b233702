import { screen } from "@testing-library/react";
import { expect, test } from "vitest";
import { change, empty, fieldError, onlySentTo, refuse, sentTo } from "@/testing/server";
import { actAs, choose, CLUSTER, dialog, firstRow, visit } from "@/testing/visit";

const CREDENTIALS = `${CLUSTER}/credentials`;
const LIST = "GET /api/v1/clusters/{cluster_id}/credentials";
const CREATE = "POST /api/v1/clusters/{cluster_id}/credentials";
const ROTATE = "POST /api/v1/clusters/{cluster_id}/credentials/{id}:rotate";

test("a credential is listed with its role, its mechanism and its last use", async () => {
  visit(CREDENTIALS);
  const cells = await firstRow("Credentials");
  expect(cells.slice(0, 4)).toEqual([
    "checkout",
    "cred_5xw4mzn6yt2ba3k2jq7v",
    "Producer",
    "SCRAM-SHA-512",
  ]);
  expect(cells.slice(5, 7)).toEqual(["53 min ago", "never"]);
});

test("of a credential that works with one mechanism alone it is said to rotate it", async () => {
  change(LIST, ({ items: [credential] }) => {
    if (credential) credential.mechanisms = ["SCRAM-SHA-256"];
  });
  visit(CREDENTIALS);
  expect((await firstRow("Credentials"))[3]).toMatch(/^SCRAM-SHA-256 only. Rotate it/);
});

test("without a credential it is said what one is for", async () => {
  empty(LIST);
  visit(CREDENTIALS);
  expect(await screen.findByText("No credential yet")).toBeVisible();
});

test("a list that is refused shows the problem's text", async () => {
  refuse(LIST, { status: 404, code: "not_found", detail: "There is no such cluster." });
  visit(CREDENTIALS);
  expect(await screen.findByRole("alert")).toHaveTextContent("There is no such cluster.");
});

test("a new credential's password is shown once, with the way to the snippets", async () => {
  const { user, address } = visit(`${CREDENTIALS}?panel=new`);
  const panel = await dialog("New credential");
  await user.click(panel.getByRole("button", { name: "Create credential" }));
  expect(panel.getByText("Name the credential")).toBeVisible();
  await user.type(panel.getByRole("textbox", { name: "Name" }), "checkout");
  await user.click(panel.getByRole("radio", { name: /^Producer/ }));
  await choose(user, panel, "Ends by itself", /30 days/);
  await user.click(panel.getByRole("button", { name: "Create credential" }));
  expect(await panel.findByText("shown-this-once")).toBeVisible();
  expect(onlySentTo(CREATE).body).toEqual({
    name: "checkout",
    role: "producer",
    expires_at: "2026-12-21T16:00:00.000Z",
  });
  expect(panel.getByRole("link", { name: /^Use it/ })).toHaveAttribute(
    "href",
    `${CLUSTER}/connect`,
  );
  await user.click(panel.getByRole("button", { name: "I have copied it" }));
  await expect.poll(address).toBe(CREDENTIALS);
  expect(screen.queryByText("shown-this-once")).toBeNull();
});

test("an error of the service is shown at its field", async () => {
  const errors = [fieldError("/name", "Another credential has this name.")];
  refuse(CREATE, { status: 409, code: "name_taken", detail: "The name is taken.", errors });
  const { user } = visit(`${CREDENTIALS}?panel=new`);
  const panel = await dialog("New credential");
  const name = panel.getByRole("textbox", { name: "Name" });
  await user.type(name, "checkout{Enter}");
  expect(await panel.findByRole("alert")).toHaveTextContent("The credential was not created");
  expect(name).toHaveAccessibleDescription(/Another credential has this name/);
});

test("a rotation says how long both are good for", async () => {
  const { user } = visit(CREDENTIALS);
  await user.click(await screen.findByRole("button", { name: "Rotate checkout" }));
  const panel = await dialog("Rotate checkout");
  await choose(user, panel, "Both are good for", /^1 hour|^an hour/i);
  await user.click(panel.getByRole("button", { name: "Rotate" }));
  expect(await panel.findByText("shown-this-once")).toBeVisible();
  expect(onlySentTo(ROTATE).body).toEqual({ overlap_s: 3600 });
});

test("what was rotated once is not rotated again", async () => {
  change(LIST, ({ items: [credential] }) => {
    if (credential) credential.replaced_by = "cred_t2ba3k2jq7v5xw4mzn6y";
  });
  visit(CREDENTIALS);
  const rotate = await screen.findByRole("button", { name: "Rotate checkout" });
  expect(rotate).toHaveAccessibleDescription(/a newer one is in its place/);
});

test("a credential is deleted only after its name was typed", async () => {
  const { user } = visit(CREDENTIALS);
  await user.click(await screen.findByRole("button", { name: "Delete checkout" }));
  const asked = await dialog("Delete the credential");
  expect(asked.getByText(/are disconnected within seconds/)).toBeVisible();
  await user.type(asked.getByRole("textbox"), "Checkout{Enter}");
  expect(sentTo("DELETE /api/v1/clusters/{cluster_id}/credentials/{id}")).toEqual([]);
  await user.clear(asked.getByRole("textbox"));
  await user.type(asked.getByRole("textbox"), "checkout{Enter}");
  expect(await screen.findByText("checkout is deleted")).toBeVisible();
});

test("a viewer makes, rotates and deletes no credential", async () => {
  actAs("viewer");
  const { user } = visit(CREDENTIALS);
  for (const name of ["Rotate checkout", "Delete checkout", "New credential"]) {
    const button = await screen.findByRole("button", { name });
    expect(button).toHaveAccessibleDescription(/yours is viewer/);
    await user.click(button);
  }
  expect(screen.queryByRole("dialog")).toBeNull();
});
