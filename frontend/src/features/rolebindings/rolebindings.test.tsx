import { screen } from "@testing-library/react";
import { expect, test } from "vitest";
import { empty, onlySentTo, refuse, sentTo } from "@/testing/server";
import { actAs, choose, dialog, visit } from "@/testing/visit";

const PROJECT = "/access/projects?panel=prj_4xw2m7kq5v3nzjt6ybac";
const ACCOUNT = "/access/service-accounts?panel=sa_5v3nz7xw4mjt6ybac2qk";
const LIST = "GET /api/v1/role-bindings";
const GIVE = "POST /api/v1/role-bindings";
const TAKE = "DELETE /api/v1/role-bindings/{id}";

test("a project's roles name who has them", async () => {
  visit(PROJECT);
  const panel = await dialog("Checkout");
  const row = await panel.findByRole("row", { name: /deploy \(service account\)/ });
  expect(row).toHaveTextContent("Developer");
});

test("a role is given to somebody who is chosen", async () => {
  const { user } = visit(PROJECT);
  const panel = await dialog("Checkout");
  const give = await panel.findByRole("button", { name: "Give the role" });
  expect(give).toBeDisabled();
  await choose(user, panel, "Person or service account", "ada@example.com");
  await choose(user, panel, "Role", "Viewer");
  await user.click(give);
  await expect
    .poll(() => onlySentTo(GIVE).body)
    .toEqual({
      principal_type: "user",
      principal_id: "usr_k3vq5n7zx2wm4jt6ybac",
      project_id: "prj_4xw2m7kq5v3nzjt6ybac",
      role: "viewer",
    });
});

test("an account's roles name their projects, and one is taken away", async () => {
  const { user } = visit(ACCOUNT);
  const panel = await dialog("deploy");
  const take = await panel.findByRole("button", { name: "Take Developer away: Checkout" });
  await user.click(take);
  await expect.poll(() => sentTo(TAKE)).toHaveLength(1);
  expect(onlySentTo(TAKE).pathname).toMatch(/\/rb_mjt6ybac2qk5v3nz7xw4$/);
});

test("without a role there is no empty table", async () => {
  empty(LIST);
  visit(ACCOUNT);
  const panel = await dialog("deploy");
  await panel.findByRole("button", { name: "Give the role" });
  await expect.poll(() => panel.queryByRole("table", { name: "Roles in projects" })).toBeNull();
});

test("a role that is refused shows the problem's text", async () => {
  refuse(GIVE, { status: 403, code: "forbidden", detail: "You have no such role yourself." });
  const { user } = visit(ACCOUNT);
  const panel = await dialog("deploy");
  await choose(user, panel, "Project", "Checkout");
  await user.click(panel.getByRole("button", { name: "Give the role" }));
  expect(await panel.findByRole("alert")).toHaveTextContent("You have no such role yourself.");
});

test("a viewer gives and takes no role", async () => {
  actAs("viewer");
  visit(ACCOUNT);
  const panel = await dialog("deploy");
  expect(panel.getByRole("button", { name: "Give the role" })).toHaveAttribute("aria-disabled");
  const take = await panel.findByRole("button", { name: /^Take Developer away/ });
  expect(take).toHaveAccessibleDescription(/yours is viewer/);
  expect(screen.getByRole("combobox", { name: "Project" })).toBeDisabled();
});
