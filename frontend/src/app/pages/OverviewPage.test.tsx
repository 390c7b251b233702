import { screen, within } from "@testing-library/react";
import { expect, test } from "vitest";
import { answer, change, empty, refuse, sentTo } from "@/testing/server";
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

const ORGANIZATION = "GET /api/v1/organizations/current";
const REASON = "The trial is used up. Add a card at https://freshet.example.com/billing.";

/** Has the API answer that the traffic of all clusters is refused. */
function withRefusedTraffic(): void {
  change(ORGANIZATION, (organization) => {
    organization.traffic_limit = { kind: "refuse", reason: REASON, bytes_per_s: null };
  });
}

test.each(["/", "/clusters"])(
  "on %s it is said that traffic is refused, and what to do",
  async (page) => {
    withRefusedTraffic();
    visit(page);
    const note = (await screen.findByText(REASON)).parentElement;
    expect(note).toHaveTextContent(/Producers and consumers are refused with POLICY_VIOLATION/);
    const content = within(screen.getByRole("main"));
    for (const [name, href] of [
      ["Payment", "/billing"],
      ["Budgets", "/usage/budgets"],
    ] as const) {
      expect(content.getByRole("link", { name })).toHaveAttribute("href", href);
    }
  },
);

test("what is unpaid is said once", async () => {
  withRefusedTraffic();
  change("GET /api/v1/account", (account) => {
    account.stage = "suspended";
    account.unpaid_since = "2026-11-01T00:00:00Z";
  });
  visit("/");
  await firstRow("Clusters");
  await screen.findByRole("region", { name: "Unpaid invoices" });
  await expect.poll(() => sentTo(ORGANIZATION).length).toBeGreaterThan(0);
  expect(screen.queryByText(REASON)).toBeNull();
});

test("a cluster whose traffic is refused is marked in the list, with the reason", async () => {
  change("GET /api/v1/clusters", ({ items: [first] }) => {
    first?.status.conditions.push(
      { type: "ProduceSuspended", status: "true", reason: "ProduceSuspended", message: REASON },
      { type: "FetchSuspended", status: "true", reason: "FetchSuspended", message: REASON },
    );
  });
  visit("/");
  expect((await firstRow("Clusters"))[1]).toMatch(/^Running.*Traffic refused$/);
  expect(screen.getByTitle(REASON)).toBeVisible();
});

const STEPS = "GET /api/v1/clusters/{cluster_id}/first-steps";

/** Has the organization have clusters of these ages in days, with the first steps of each. */
function withClusters(clusters: Record<string, { days: number; consumed: boolean }>): void {
  change("GET /api/v1/clusters", (page) => {
    const [first] = page.items;
    if (!first) throw new Error("the example has no cluster");
    page.items = Object.entries(clusters).map(([name, { days }]) => ({
      ...first,
      id: `cl_${name}`,
      name,
      created_at: new Date(Date.UTC(2026, 10, 20 - days)).toISOString(),
    }));
  });
  answer(STEPS, ({ pathname }) => ({
    credential: true,
    produced: true,
    consumed: clusters[/cl_(\w+)/.exec(pathname)?.[1] ?? ""]?.consumed ?? false,
  }));
}

test("a cluster with a step left comes with the way to its first message", async () => {
  visit("/");
  const part = within(await screen.findByRole("region", { name: "Connect to orders" }));
  const watch = await part.findByRole("link", { name: "Watch payments live" });
  expect(watch.getAttribute("href")).toMatch(/\/topics\/payments\?from=live$/);
  expect(part.getByTestId("code freshet.py")).toHaveTextContent('topic = "payments"');
  expect(part.getByRole("list", { name: "First steps" })).toHaveTextContent(/by a groupTo do$/);
});

test("steps of several clusters stay, and snippets are those of the newest", async () => {
  withClusters({
    oldest: { days: 9, consumed: false },
    first: { days: 5, consumed: false },
    done: { days: 3, consumed: true },
    second: { days: 1, consumed: false },
  });
  visit("/");
  await screen.findByRole("region", { name: "Connect to second" });
  const region = await screen.findByRole("region", { name: "First steps with first" });
  const link = within(region).getByRole("link", { name: "Connect a client" });
  expect(link).toHaveAttribute("href", "/clusters/cl_first/connect");
  // Of three clusters at most, so that an overview of many asks for little.
  expect(screen.getAllByRole("list", { name: "First steps" })).toHaveLength(2);
});

test("steps that are done are gone", async () => {
  withClusters({ only: { days: 1, consumed: true } });
  visit("/");
  await firstRow("Clusters");
  await expect.poll(() => sentTo(STEPS).length).toBe(1);
  expect(screen.queryByRole("list", { name: "First steps" })).toBeNull();
});

test("first steps that cannot be read say so", async () => {
  refuse(STEPS, { status: 403, detail: "The cell is away." });
  visit("/");
  const alert = await screen.findByRole("alert");
  expect(alert).toHaveTextContent("The first steps could not be read");
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
