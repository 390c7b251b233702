import { screen, within } from "@testing-library/react";
import { expect, test } from "vitest";
import type { AclDraft } from "@/lib/api/types";
import { exampleOf } from "@/testing/contract";
import { answer, change, empty, onlySentTo, refuse, sentTo } from "@/testing/server";
import { actAs, choose, CLUSTER, visit } from "@/testing/visit";

const CREATE = "POST /api/v1/clusters/{cluster_id}/credentials";
const DELETE = "DELETE /api/v1/clusters/{cluster_id}/credentials/{id}";
const STEPS = "GET /api/v1/clusters/{cluster_id}/first-steps";
const RULES = "GET /api/v1/clusters/{cluster_id}/acls";
const ADD_RULES = "POST /api/v1/clusters/{cluster_id}/acls:batch";
const CONNECT = `${CLUSTER}/connect`;
const PRESS = { name: "Create a credential and fill it in" };

/** Has the cluster be one without a credential. */
function withoutCredential(): void {
  change(STEPS, (steps) => {
    steps.credential = false;
    steps.produced = false;
  });
}

/** Returns the rules of a request to add some, as words. */
const rulesIn = (body: unknown): string[] =>
  (body as { items: AclDraft[] }).items.map(
    (rule) => `${rule.operation} ${rule.resource_type} ${rule.resource_name}`,
  );

const GROUPS = ["python", "java", "node", "go", "kcat"].map((id) => `READ GROUP ${id}-group`);

test("a cluster without a credential gets one at once, in every language and once", async () => {
  withoutCredential();
  const { user } = visit(CONNECT);
  expect(await screen.findByText(/is filled in/)).toBeVisible();
  expect(onlySentTo(CREATE).body).toEqual({ name: "first-steps", role: "none" });
  const rules = rulesIn(onlySentTo(ADD_RULES).body);
  expect(rules).toEqual(["WRITE TOPIC payments", "READ TOPIC payments", ...GROUPS]);
  const tabs = screen.getAllByRole("tab").map(({ textContent }) => textContent);
  expect(tabs).toEqual(["Python", "Java", "Node.js", "Go", "kcat"]);
  expect(screen.getByTestId("code freshet.py")).toBeVisible();
  for (const language of tabs) {
    await user.click(screen.getByRole("tab", { name: language }));
    const [block] = screen.getAllByTestId(/^code /);
    expect(block?.closest("[role=tabpanel]")).toHaveTextContent("shown-this-once");
  }
  const cluster = within(screen.getByRole("navigation", { name: "Cluster" }));
  await user.click(cluster.getByRole("link", { name: "Topics" }));
  await screen.findByRole("table", { name: "Topics" });
  await user.click(cluster.getByRole("link", { name: "Connect" }));
  expect(await screen.findByText(/is filled in/)).toBeVisible();
  expect(sentTo(CREATE)).toHaveLength(1);
});

test("a credential whose rights are refused is taken back, and the reason is shown", async () => {
  withoutCredential();
  refuse(ADD_RULES, { status: 403, code: "limit_reached", detail: "The cluster has 1,000 rules." });
  visit(CONNECT);
  const alert = await screen.findByRole("alert");
  expect(alert).toHaveTextContent("The credential was not created");
  expect(alert).toHaveTextContent("The cluster has 1,000 rules.");
  expect(sentTo(CREATE)).toHaveLength(1);
  expect(sentTo(DELETE)).toHaveLength(1);
  expect(screen.queryByText(/is filled in/)).toBeNull();
});

test("where somebody else was faster, there is a button and no error", async () => {
  withoutCredential();
  refuse(CREATE, { status: 409, code: "name_taken", detail: "The name is taken." });
  visit(CONNECT);
  await expect.poll(() => sentTo(CREATE).length).toBe(1);
  expect(await screen.findByRole("button", PRESS)).toBeEnabled();
  expect(screen.queryByRole("alert")).toBeNull();
});

test("a cluster with a credential gets another one only where somebody asks for it", async () => {
  const { user } = visit(`${CONNECT}?language=kcat`);
  expect(await screen.findByTestId("code Produce")).toHaveTextContent("PASSWORD");
  await user.click(await screen.findByRole("button", PRESS));
  expect(await screen.findByText(/is filled in/)).toBeVisible();
  expect(onlySentTo(CREATE).body).toEqual({ name: "console-20261121-160000", role: "none" });
  expect(screen.getByTestId("code Produce")).toHaveTextContent("shown-this-once");
});

test("rights that another topic needs are named, and added where somebody asks", async () => {
  const [rule] = exampleOf(RULES).items;
  if (!rule) throw new Error("the example has no rule");
  answer(RULES, ({ query }) => ({
    items: GROUPS.map((words, at) => ({
      ...rule,
      id: `${rule.id.slice(0, -1)}${"abcde"[at] ?? ""}`,
      principal: query.principal ?? rule.principal,
      resource_type: "GROUP" as const,
      resource_name: words.slice("READ GROUP ".length),
      pattern_type: "LITERAL" as const,
      operation: "READ" as const,
      permission: "ALLOW" as const,
      host: "*",
    })),
    next_cursor: null,
  }));
  const { user } = visit(CONNECT);
  await user.click(await screen.findByRole("button", PRESS));
  expect(
    await screen.findByText(/need more than it may do: WRITE on topic payments, READ on topic/),
  ).toBeVisible();
  await user.click(screen.getByRole("button", { name: "Give it these rights" }));
  await expect.poll(() => sentTo(ADD_RULES).length).toBe(2);
  const rules = rulesIn(sentTo(ADD_RULES)[1]?.body);
  expect(rules).toEqual(["WRITE TOPIC payments", "READ TOPIC payments"]);
});

test("a cluster without a topic leads to one, and gets no credential before", async () => {
  withoutCredential();
  empty("GET /api/v1/clusters/{cluster_id}/topics");
  visit(CONNECT);
  const link = await screen.findByRole("link", { name: "New topic" });
  expect(link).toHaveAttribute("href", `${CLUSTER}/topics?panel=new`);
  expect(sentTo(CREATE)).toHaveLength(0);
});

test("steps stay on the page until the service has seen all of them", async () => {
  change(STEPS, (steps) => {
    steps.produced = null;
  });
  visit(CONNECT);
  const steps = await screen.findByRole("list", { name: "First steps" });
  const lines = within(steps)
    .getAllByRole("listitem")
    .map(({ textContent }) => textContent);
  expect(lines).toEqual([
    "A credential is madeDone",
    "A first record is producedNot known",
    "A first record is consumed by a groupTo do",
  ]);
});

test("steps that are done are no longer on the page", async () => {
  change(STEPS, (steps) => {
    steps.consumed = true;
  });
  visit(CONNECT);
  await screen.findByTestId("code freshet.py");
  await screen.findByRole("button", PRESS);
  expect(screen.queryByRole("list", { name: "First steps" })).toBeNull();
});

test("another endpoint and another topic are in the snippets", async () => {
  const { user } = visit(`${CONNECT}?language=kcat`);
  const block = await screen.findByTestId("code Produce");
  expect(block).toHaveTextContent("127.0.0.1:9092");
  await expect.poll(() => block).toHaveTextContent("payments");
  await user.click(screen.getByRole("radio", { name: "TLS" }));
  expect(screen.getByTestId("code Produce")).toHaveTextContent("kafka.localhost:9443");
  await user.type(screen.getByRole("textbox", { name: "Path of ca.pem" }), ".bak");
  expect(screen.getByTestId("code Produce")).toHaveTextContent("ca.pem.bak");
});

test("a topic is chosen from those of the cluster", async () => {
  const { user } = visit(`${CONNECT}?language=kcat`);
  await screen.findByTestId("code Produce");
  await choose(user, screen, "Topic", "payments");
  expect(screen.getByTestId("code Produce")).toHaveTextContent("-t payments");
});

test("a credential that is refused shows the problem's text", async () => {
  refuse(CREATE, { status: 403, code: "limit_reached", detail: "The cluster has 1,000." });
  const { user } = visit(CONNECT);
  await user.click(await screen.findByRole("button", PRESS));
  const alert = await screen.findByRole("alert");
  expect(alert).toHaveTextContent("The credential was not created");
  expect(alert).toHaveTextContent("The cluster has 1,000.");
});

test("a viewer makes no credential, and none is made for them", async () => {
  actAs("viewer");
  withoutCredential();
  visit(CONNECT);
  const button = await screen.findByRole("button", { name: /^Create a credential/ });
  expect(button).toHaveAccessibleDescription(/yours is viewer/);
  expect(sentTo(CREATE)).toHaveLength(0);
});
