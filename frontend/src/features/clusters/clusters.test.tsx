import { screen, within } from "@testing-library/react";
import { expect, test } from "vitest";
import { exampleOf } from "@/testing/contract";
import { answer, change, empty, fieldError, onlySentTo, refuse, sentTo } from "@/testing/server";
import { actAs, choose, CLUSTER, dialog, firstRow, rowsOf, visit } from "@/testing/visit";

const LIST = "GET /api/v1/clusters";
const ONE = "GET /api/v1/clusters/{id}";
const CREATE = "POST /api/v1/clusters";
const UPDATE = "PATCH /api/v1/clusters/{id}";
const DELETE = "DELETE /api/v1/clusters/{id}";

type Phase = "asleep" | "suspended" | "failed" | "provisioning";

/** Has the API answer that the cluster is in a phase. */
function inPhase(phase: Phase, message = ""): void {
  change(ONE, ({ status }) => {
    Object.assign(status, { phase, conditions: [{ ...status.conditions[0], message }] });
  });
}

test.each([
  [["ProduceSuspended", "FetchSuspended"], /Producers and consumers are refused/],
  [["ProduceSuspended"], /Consumers go on reading/],
  [["Throttled"], /slowed down to this rate together/],
])("a cluster with the conditions %s says what clients get", async (types, effect) => {
  const message = 'The budget "Team" is used up.';
  change(ONE, ({ status }) => {
    for (const type of types) {
      status.conditions.push({ type, status: "true", reason: type, message });
    }
  });
  visit(CLUSTER);
  const note = await screen.findByText(message);
  expect(note).toBeVisible();
  expect(screen.getByText(effect)).toBeVisible();
});

test("clusters are listed over all pages, by name", async () => {
  answer(LIST, ({ query }) => {
    const page = exampleOf(LIST);
    const last = query.cursor === "next";
    const items = page.items.map((one) => ({ ...one, name: last ? "a" : "b", id: `cl_${last}` }));
    return { ...page, items, next_cursor: last ? null : "next" };
  });
  visit("/clusters");
  expect((await rowsOf("Clusters")).map(([name]) => name)).toEqual(["a", "b"]);
});

test("a cluster is listed with its state and its address", async () => {
  visit("/clusters");
  const [name, state, , region, bootstrap] = await firstRow("Clusters");
  expect([name, state, region, bootstrap]).toEqual([
    "orders",
    "Running",
    "local",
    "127.0.0.1:9092",
  ]);
});

test("where there are several projects, each cluster names its own", async () => {
  change("GET /api/v1/projects", (page) => {
    const [first] = page.items;
    if (first) page.items.push({ ...first, id: "prj_other", name: "Other", default: true });
  });
  visit("/clusters");
  expect((await firstRow("Clusters"))[1]).toBe("Checkout");
});

test("without a cluster it is said what one costs", async () => {
  empty(LIST);
  visit("/clusters");
  expect(await screen.findByText("No cluster yet")).toBeVisible();
  expect(screen.getByText(/costs nothing while it sleeps/)).toBeVisible();
});

test("a list that is refused shows the problem's text", async () => {
  refuse(LIST, { status: 403, detail: "The organization is closed." });
  visit("/clusters");
  expect(await screen.findByRole("alert")).toHaveTextContent("The organization is closed.");
});

test("a new cluster is made of what was typed, and its page opens", async () => {
  const { user, address } = visit("/clusters?panel=new");
  const panel = await dialog("New cluster");
  const create = await panel.findByRole("button", { name: "Create cluster" });
  await expect.poll(() => create).toBeEnabled();
  await user.click(create);
  expect(panel.getByText("Name the cluster")).toBeVisible();
  expect(sentTo(CREATE)).toEqual([]);
  await user.type(panel.getByRole("textbox", { name: "Name" }), "orders");
  await user.click(create);
  await expect.poll(address).toBe(CLUSTER);
  expect(onlySentTo(CREATE).body).toEqual({
    name: "orders",
    region: "local",
    project_id: "prj_4xw2m7kq5v3nzjt6ybac",
    spec: { scale: { max: 1 } },
  });
});

test("a new cluster has as many brokers as were typed, from 1 to 16", async () => {
  const { user } = visit("/clusters?panel=new");
  const panel = await dialog("New cluster");
  await user.type(panel.getByRole("textbox", { name: "Name" }), "orders");
  const brokers = panel.getByRole("textbox", { name: "Brokers" });
  expect(brokers).toHaveValue("1");
  await user.clear(brokers);
  await user.type(brokers, "17");
  const create = await panel.findByRole("button", { name: "Create cluster" });
  await user.click(create);
  expect(brokers).toHaveAccessibleDescription(/From 1 to 16/);
  expect(sentTo(CREATE)).toEqual([]);
  await user.clear(brokers);
  await user.type(brokers, "3");
  await user.click(create);
  await expect.poll(() => sentTo(CREATE)[0]?.body).toMatchObject({ spec: { scale: { max: 3 } } });
});

test("a limit that is reached is named with what is in use", async () => {
  refuse(CREATE, {
    status: 403,
    code: "limit_reached",
    detail: "The organization has as many clusters as it may.",
    quota: { name: "clusters", limit: 10, used: 10 },
  });
  const { user } = visit("/clusters?panel=new");
  const panel = await dialog("New cluster");
  await user.type(panel.getByRole("textbox", { name: "Name" }), "orders");
  await user.click(await panel.findByRole("button", { name: "Create cluster" }));
  const shown = await panel.findByRole("alert");
  expect(shown).toHaveTextContent("The limit clusters is 10, and 10 are in use.");
});

test("a cluster's page says what its state means", async () => {
  visit(CLUSTER);
  expect(await screen.findByText(/2 client connections/)).toBeVisible();
  expect(screen.getByText(/Its hours keep it awake/)).toBeVisible();
  expect(screen.getByText("SASL_SSL")).toBeVisible();
});

test("a cluster's page says what each of its brokers does", async () => {
  change(ONE, ({ status }) => {
    const phases = ["serving", "starting", "stopped"] as const;
    status.brokers = phases.map((phase, slot) => ({ slot, phase }));
  });
  visit(CLUSTER);
  const section = within(await screen.findByRole("region", { name: "Brokers" }));
  const shown = section.getAllByRole("listitem").map(({ textContent }) => textContent);
  expect(shown).toEqual(["Broker 0Serving", "Broker 1Starting", "Broker 2Stopped"]);
});

test("a sleeping cluster is woken on demand, and looking at it does not", async () => {
  inPhase("asleep");
  const { user } = visit(CLUSTER);
  expect(await screen.findByText(/No process runs, and compute costs nothing/)).toBeVisible();
  const wake = "POST /api/v1/clusters/{id}:wake";
  expect(sentTo(wake)).toEqual([]);
  await user.click(screen.getByRole("button", { name: "Wake now" }));
  await expect.poll(() => sentTo(wake)).toHaveLength(1);
});

test("a failed cluster says why", async () => {
  inPhase("failed", "The machine has no memory left.");
  visit(CLUSTER);
  expect(await screen.findByText("The machine has no memory left.")).toBeVisible();
  expect(screen.queryByRole("button", { name: "Put to sleep" })).toBeNull();
});

test("a cluster that may not sleep now says so", async () => {
  const detail = "Its hours keep it awake until 19:00.";
  refuse("POST /api/v1/clusters/{id}:sleep", { status: 409, code: "kept_awake", detail });
  const { user } = visit(CLUSTER);
  await user.click(await screen.findByRole("button", { name: "Put to sleep" }));
  expect(await screen.findByText("It stays awake")).toBeVisible();
  expect(screen.getByText(new RegExp(detail))).toBeVisible();
});

test("only what was changed is sent, of the version that was read", async () => {
  const { user } = visit(`${CLUSTER}/settings`);
  await screen.findByRole("textbox", { name: "Name" });
  const save = screen.getByRole("button", { name: "Save" });
  expect(save).toBeDisabled();
  await choose(user, screen, "Idle time", "15 min");
  await user.click(save);
  expect(await screen.findByText("The settings are saved")).toBeVisible();
  const { body, headers } = onlySentTo(UPDATE);
  expect(body).toEqual({ idle_timeout_s: 900 });
  expect(headers.get("if-match")).toBe('"1"');
});

test("the number of brokers is changed alone", async () => {
  const { user } = visit(`${CLUSTER}/settings`);
  const brokers = await screen.findByRole("textbox", { name: "Brokers" });
  expect(brokers).toHaveValue("3");
  const save = screen.getByRole("button", { name: "Save" });
  await user.clear(brokers);
  await user.click(save);
  expect(brokers).toHaveAccessibleDescription(/From 1 to 16/);
  expect(sentTo(UPDATE)).toEqual([]);
  await user.type(brokers, "5");
  await user.click(save);
  expect(await screen.findByText("The settings are saved")).toBeVisible();
  expect(onlySentTo(UPDATE).body).toEqual({ spec: { scale: { max: 5 } } });
});

test("hours that are not complete are not sent", async () => {
  const { user } = visit(`${CLUSTER}/settings`);
  const hours = within(await screen.findByRole("group", { name: "Hours 1" }));
  const until = hours.getByRole("textbox", { name: "Until" });
  await user.clear(until);
  await user.type(until, "25:00");
  expect(hours.getByText("Like 19:00 or 24:00")).toBeVisible();
  await user.click(screen.getByRole("button", { name: "Save" }));
  expect(await screen.findByText("Complete the hours")).toBeVisible();
  expect(sentTo(UPDATE)).toEqual([]);
});

test("a name that is taken is refused at its field", async () => {
  const errors = [fieldError("/name", "Another cluster has this name.")];
  refuse(UPDATE, { status: 409, code: "name_taken", detail: "The name is taken.", errors });
  const { user } = visit(`${CLUSTER}/settings`);
  const name = await screen.findByRole("textbox", { name: "Name" });
  await user.type(name, "-2{Enter}");
  expect(await screen.findByRole("alert")).toHaveTextContent("Choose another name.");
  expect(name).toHaveAccessibleDescription(/Another cluster has this name/);
});

test("a protected cluster is not deleted", async () => {
  const { user } = visit(`${CLUSTER}/settings`);
  const remove = await screen.findByRole("button", { name: "Delete the cluster" });
  expect(remove).toBeDisabled();
  await user.click(screen.getByRole("switch", { name: /^Protected from deletion/ }));
  await expect.poll(() => sentTo(UPDATE)[0]?.body).toEqual({ deletion_protection: false });
});

test("a cluster is deleted only after its name was typed", async () => {
  change(ONE, (cluster) => (cluster.deletion_protection = false));
  const { user, address } = visit(`${CLUSTER}/settings`);
  await user.click(await screen.findByRole("button", { name: "Delete the cluster" }));
  const asked = await dialog("Delete the cluster");
  const confirm = asked.getByRole("button", { name: "Delete the cluster" });
  await user.type(asked.getByRole("textbox"), "order");
  expect(confirm).toBeDisabled();
  await user.type(asked.getByRole("textbox"), "s");
  await user.click(confirm);
  await expect.poll(address).toBe("/clusters");
  expect(onlySentTo(DELETE).query).toEqual({ name: "orders" });
});

test("a suspended cluster is resumed at once, and suspended after its name was typed", async () => {
  inPhase("suspended");
  const { user } = visit(`${CLUSTER}/settings`);
  await user.click(await screen.findByRole("button", { name: "Resume the cluster" }));
  await expect.poll(() => sentTo("POST /api/v1/clusters/{id}:resume")).toHaveLength(1);
  expect(screen.queryByRole("dialog")).toBeNull();
});

test("a deleted cluster can be restored, and nothing else", async () => {
  change(ONE, (cluster) => (cluster.deleted_at = "2026-11-21T15:30:00Z"));
  const { user } = visit(`${CLUSTER}/settings`);
  await user.click(await screen.findByRole("button", { name: "Restore the cluster" }));
  await expect.poll(() => sentTo("POST /api/v1/clusters/{id}:undelete")).toHaveLength(1);
  expect(screen.queryByRole("button", { name: "Save" })).toBeNull();
});

test("a viewer wakes, changes and deletes nothing", async () => {
  actAs("viewer");
  const { user } = visit(`${CLUSTER}/settings`);
  for (const name of ["Put to sleep", "Suspend the cluster", "Save"]) {
    const button = await screen.findByRole("button", { name });
    expect(button).toHaveAccessibleDescription(/yours is viewer/);
    await user.click(button);
  }
  expect(screen.queryByRole("dialog")).toBeNull();
});
