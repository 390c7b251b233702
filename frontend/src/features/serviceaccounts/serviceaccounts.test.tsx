import { screen } from "@testing-library/react";
import { expect, test } from "vitest";
import { change, empty, onlySentTo, refuse, sentTo } from "@/testing/server";
import { actAs, choose, dialog, firstRow, visit } from "@/testing/visit";

const PAGE = "/access/service-accounts";
const LIST = "GET /api/v1/service-accounts";
const CREATE = "POST /api/v1/service-accounts";
const UPDATE = "PATCH /api/v1/service-accounts/{id}";

test("an account is listed with its state and its role", async () => {
  visit(PAGE);
  expect((await firstRow("Service accounts")).slice(0, 4)).toEqual([
    "deploy",
    "Applies what is merged.",
    "Active",
    "Member",
  ]);
});

test("an account that is disabled says so", async () => {
  change(LIST, ({ items: [account] }) => {
    if (account) account.disabled = true;
  });
  visit(PAGE);
  expect((await firstRow("Service accounts"))[2]).toBe("Disabled");
});

test("without an account it is said what one is for", async () => {
  empty(LIST);
  visit(PAGE);
  expect(await screen.findByText("No service account")).toBeVisible();
});

test("a list that is refused shows the problem's text", async () => {
  refuse(LIST, { status: 403, detail: "Your role is billing." });
  visit(PAGE);
  expect(await screen.findByText(/Your role is billing\./)).toBeVisible();
});

test("a new account is made of what was typed", async () => {
  const { user } = visit(`${PAGE}?panel=new`);
  const panel = await dialog("New service account");
  await user.click(panel.getByRole("button", { name: "Create account" }));
  expect(panel.getByText("Name the account")).toBeVisible();
  await user.type(panel.getByRole("textbox", { name: "Name" }), "deploy");
  await user.type(panel.getByRole("textbox", { name: "Description" }), "Applies.");
  await choose(user, panel, "Role in the organization", /^Viewer/);
  await user.click(panel.getByRole("button", { name: "Create account" }));
  expect(await screen.findByText("deploy is saved")).toBeVisible();
  expect(onlySentTo(CREATE).body).toEqual({
    name: "deploy",
    description: "Applies.",
    role: "viewer",
  });
});

test("an account is disabled for a while", async () => {
  const { user } = visit(`${PAGE}?panel=sa_5v3nz7xw4mjt6ybac2qk`);
  const panel = await dialog("deploy");
  await user.click(panel.getByRole("switch", { name: /^Disabled/ }));
  await user.click(panel.getByRole("button", { name: "Save" }));
  await expect.poll(() => sentTo(UPDATE)[0]?.body).toMatchObject({ disabled: true });
  expect(onlySentTo(UPDATE).headers.get("if-match")).toBe('"1"');
});

test("an account is deleted only after its name was typed", async () => {
  const { user } = visit(PAGE);
  await user.click(await screen.findByRole("button", { name: "Delete deploy" }));
  const asked = await dialog("Delete the service account");
  expect(asked.getByRole("button", { name: /^Delete/ })).toBeDisabled();
  await user.type(asked.getByRole("textbox"), "deploy{Enter}");
  expect(await screen.findByText("deploy is deleted")).toBeVisible();
});

test("a viewer makes and deletes no account", async () => {
  actAs("viewer");
  visit(PAGE);
  const remove = await screen.findByRole("button", { name: "Delete deploy" });
  expect(remove).toHaveAccessibleDescription(/yours is viewer/);
  const create = screen.getByRole("button", { name: "New service account" });
  expect(create).toHaveAttribute("aria-disabled", "true");
});

test("an admin neither changes nor deletes an owner's account", async () => {
  actAs("admin");
  change(LIST, ({ items: [account] }) => {
    if (account) account.role = "owner";
  });
  visit(`${PAGE}?panel=sa_5v3nz7xw4mjt6ybac2qk`);
  const save = (await dialog("deploy")).getByRole("button", { name: "Save" });
  expect(save).toHaveAccessibleDescription(
    "The role owner is above yours, which is admin. Ask somebody who has it.",
  );
  const remove = screen.getByRole("button", { name: "Delete deploy", hidden: true });
  expect(remove).toHaveAttribute("aria-disabled", "true");
});
