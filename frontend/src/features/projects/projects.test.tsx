import { screen } from "@testing-library/react";
import { expect, test } from "vitest";
import { change, empty, fieldError, onlySentTo, refuse, sentTo } from "@/testing/server";
import { actAs, dialog, firstRow, visit } from "@/testing/visit";

const LIST = "GET /api/v1/projects";
const CREATE = "POST /api/v1/projects";
const DELETE = "DELETE /api/v1/projects/{id}";
const REMOVE = { name: "Delete Checkout" };

test("a project is listed with the number of its clusters", async () => {
  visit("/access/projects");
  const link = await screen.findByRole("link", { name: "Checkout" });
  await expect.poll(async () => (await firstRow("Projects"))[1]).toBe("1");
  expect(link).toHaveAttribute("href", "/access/projects?panel=prj_4xw2m7kq5v3nzjt6ybac");
});

test("a person without a role in a project reads whom to ask", async () => {
  empty(LIST);
  visit("/access/projects");
  expect(await screen.findByText("You have no project")).toBeVisible();
});

test("a list that is refused shows the problem's text", async () => {
  refuse(LIST, { status: 403, detail: "Your second factor is asked for first." });
  visit("/access/projects");
  expect(await screen.findByText(/Your second factor is asked for first/)).toBeVisible();
});

test("a new project has the name that was typed", async () => {
  const { user } = visit("/access/projects?panel=new");
  const panel = await dialog("New project");
  await user.click(panel.getByRole("button", { name: "Create project" }));
  expect(panel.getByText("Name the project")).toBeVisible();
  await user.type(panel.getByRole("textbox", { name: "Name" }), " Checkout ");
  await user.click(panel.getByRole("button", { name: "Create project" }));
  expect(await screen.findByText("Checkout is there")).toBeVisible();
  expect(onlySentTo(CREATE).body).toEqual({ name: "Checkout" });
});

test("a name that is taken is refused at its field", async () => {
  const errors = [fieldError("/name", "Another project has this name.")];
  refuse("PATCH /api/v1/projects/{id}", {
    status: 409,
    code: "name_taken",
    detail: "The name is taken.",
    errors,
  });
  const { user } = visit("/access/projects?panel=prj_4xw2m7kq5v3nzjt6ybac");
  const panel = await dialog("Checkout");
  const name = panel.getByRole("textbox", { name: "Name" });
  await user.type(name, "2{Enter}");
  expect(await panel.findByText("The project was not saved")).toBeVisible();
  expect(name).toHaveAccessibleDescription(/Another project has this name/);
});

test("a project with clusters, or the default one, is not deleted", async () => {
  visit("/access/projects");
  const remove = await screen.findByRole("button", REMOVE);
  await expect.poll(() => remove).toHaveAccessibleDescription(/Move its clusters/);
});

test("an empty project is deleted only after its name was typed", async () => {
  change("GET /api/v1/clusters", (page) => (page.items = []));
  const { user } = visit("/access/projects");
  await user.click(await screen.findByRole("button", REMOVE));
  const asked = await dialog("Delete the project");
  await user.type(asked.getByRole("textbox"), "checkout{Enter}");
  expect(sentTo(DELETE)).toEqual([]);
  await user.clear(asked.getByRole("textbox"));
  await user.type(asked.getByRole("textbox"), "Checkout{Enter}");
  expect(await screen.findByText("Checkout is deleted")).toBeVisible();
});

test("a developer makes and deletes no project", async () => {
  actAs("developer");
  visit("/access/projects");
  expect(await screen.findByRole("button", REMOVE)).toHaveAccessibleDescription(/is developer/);
  const create = screen.getByRole("button", { name: "New project" });
  expect(create).toHaveAccessibleDescription(/yours is developer/);
});
