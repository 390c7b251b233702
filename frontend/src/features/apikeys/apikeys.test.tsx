import { screen } from "@testing-library/react";
import { expect, test } from "vitest";
import { empty, fieldError, onlySentTo, refuse, sentTo } from "@/testing/server";
import { actAs, choose, dialog, firstRow, visit } from "@/testing/visit";

test("keys are listed with their role and their end", async () => {
  visit("/access/keys");
  const cells = await firstRow("API keys");
  expect(cells.slice(0, 3)).toEqual(["First key", "–", "Owner"]);
  expect(cells[5]).toBe("never");
});

test("without a key it is said what one is good for", async () => {
  empty("GET /api/v1/api-keys");
  visit("/access/keys");
  expect(await screen.findByText("No API key")).toBeVisible();
  expect(screen.queryByRole("table")).toBeNull();
});

test("a list that is refused shows the problem's text and the request's id", async () => {
  const detail = "Your address is not one of those allowed.";
  refuse("GET /api/v1/api-keys", { status: 403, detail, request_id: "req_abc" });
  visit("/access/keys");
  const alert = await screen.findByRole("alert");
  expect(alert).toHaveTextContent("The API keys could not be read");
  expect(alert).toHaveTextContent(detail);
  expect(alert).toHaveTextContent("req_abc");
});

test("a new key is made of what was typed, and its secret is shown once", async () => {
  const { user } = visit("/access/keys?panel=new");
  const panel = await dialog("New API key");
  await user.click(panel.getByRole("button", { name: "Create key" }));
  expect(panel.getByText("Name the key")).toBeVisible();
  expect(sentTo("POST /api/v1/api-keys")).toEqual([]);

  await user.type(panel.getByRole("textbox", { name: "Name" }), " pipeline ");
  await choose(user, panel, "Role", /^Viewer/);
  await user.click(panel.getByRole("button", { name: "Create key" }));
  expect(await panel.findByText("Copy it now.")).toBeVisible();
  const { body, headers } = onlySentTo("POST /api/v1/api-keys");
  expect(body).toEqual({ name: "pipeline", role: "viewer", expires_at: null });
  expect(headers.get("x-csrftoken")).toMatch(/^kq3zv/);
  expect(headers.get("idempotency-key")).toMatch(/^[0-9a-f]{32}$/);
});

test("an error of the service is shown at its field", async () => {
  const errors = [fieldError("/name", "Another key has this name.")];
  refuse("POST /api/v1/api-keys", { status: 422, detail: "Not valid.", errors });
  const { user } = visit("/access/keys?panel=new");
  const panel = await dialog("New API key");
  const name = panel.getByRole("textbox", { name: "Name" });
  await user.type(name, "pipeline{Enter}");
  expect(await panel.findByRole("alert")).toHaveTextContent("The key was not created");
  expect(name).toBeInvalid();
  expect(name).toHaveAccessibleDescription(/Another key has this name\./);
});

test("a key is revoked only after its name was typed", async () => {
  const { user } = visit("/access/keys");
  await user.click(await screen.findByRole("button", { name: "Revoke First key" }));
  const asked = await dialog("Revoke the API key");
  const confirm = asked.getByRole("button", { name: "Revoke the key" });
  await user.type(asked.getByRole("textbox"), "First");
  expect(confirm).toBeDisabled();
  await user.type(asked.getByRole("textbox"), " key");
  await user.click(confirm);
  expect(await screen.findByText("First key is revoked")).toBeVisible();
  expect(onlySentTo("DELETE /api/v1/api-keys/{id}").pathname).toMatch(/key_e4t7ncz5qx2mlk3vw6yd$/);
});

test("a viewer reads why they can neither make nor revoke a key", async () => {
  actAs("viewer");
  const { user } = visit("/access/keys");
  const revoke = await screen.findByRole("button", { name: "Revoke First key" });
  expect(revoke).toHaveAccessibleDescription(/Owners and admins may manage/);
  await user.click(revoke);
  await user.click(screen.getByRole("button", { name: "New API key" }));
  expect(screen.queryByRole("dialog")).toBeNull();
});
