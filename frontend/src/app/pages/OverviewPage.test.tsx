import { screen, within } from "@testing-library/react";
import { expect, test } from "vitest";
import { change, empty, refuse } from "@/testing/server";
import { actAs, firstRow, visit } from "@/testing/visit";

function tile(label: string): HTMLElement {
  const tile = screen.getByText(label).parentElement;
  if (!tile) throw new Error(`no tile ${label}`);
  return tile;
}

test("clusters are counted by what they do", async () => {
  change("GET /api/v1/clusters", (page) => {
    const [first] = page.items;
    if (!first) throw new Error("the example has no cluster");
    page.items = (["running", "asleep", "asleep", "failed"] as const).map((phase, at) => ({
      ...first,
      id: `cl_${String(at)}`,
      status: { ...first.status, phase },
    }));
  });
  visit("/");
  await firstRow("Clusters");
  expect(tile("Need attention")).toHaveTextContent(/^Need attention1/);
  const asleep = screen.getByText("no process; the next client wakes it").parentElement;
  expect(asleep).toHaveTextContent(/^Asleep2/);
});

test("a single cluster comes with the way to its first message", async () => {
  visit("/");
  const part = within(await screen.findByRole("region", { name: "Connect to orders" }));
  const watch = await part.findByRole("link", { name: "Watch payments live" });
  expect(watch.getAttribute("href")).toMatch(/\/topics\/payments\?from=live$/);
  expect(part.getByTestId("code Produce")).toHaveTextContent("-t payments");
});

test("without a cluster there is the way to one", async () => {
  empty("GET /api/v1/clusters");
  visit("/");
  const create = await screen.findByRole("link", { name: "New cluster" });
  expect(create).toHaveAttribute("href", "/clusters?panel=new");
});

test("who may not see money sees clusters, and no amounts", async () => {
  actAs("member");
  refuse("GET /api/v1/costs", { status: 403, detail: "Your role is member." });
  visit("/");
  await firstRow("Clusters");
  await expect.poll(() => screen.queryByText("This month")).toBeNull();
  expect(screen.queryByText(/Your role is member/)).toBeNull();
});

test("clusters that cannot be read show the problem's text, and are read again", async () => {
  refuse("GET /api/v1/clusters", { status: 403, detail: "The organization is closed." });
  visit("/");
  const alert = await screen.findByRole("alert");
  expect(alert).toHaveTextContent("The organization is closed.");
  expect(within(alert).getByRole("button", { name: "Try again" })).toBeVisible();
});
