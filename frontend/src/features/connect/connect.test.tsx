import { screen } from "@testing-library/react";
import { expect, test } from "vitest";
import { onlySentTo, refuse } from "@/testing/server";
import { actAs, choose, CLUSTER, visit } from "@/testing/visit";

const CREATE = "POST /api/v1/clusters/{cluster_id}/credentials";

test("a created credential is filled into every language's snippet", async () => {
  const { user } = visit(`${CLUSTER}/connect`);
  expect(await screen.findByTestId("code Produce")).not.toHaveTextContent("shown-this-once");
  await user.click(screen.getByRole("button", { name: "Create a credential and fill it in" }));
  expect(await screen.findByText(/is filled in/)).toBeVisible();
  expect(onlySentTo(CREATE).body).toEqual({ name: "console-20261121-160000", role: "full" });
  for (const language of ["kcat", "Python", "Java", "Go", "Node.js"]) {
    await user.click(screen.getByRole("tab", { name: language }));
    const [block] = screen.getAllByTestId(/^code /);
    expect(block?.closest("[role=tabpanel]")).toHaveTextContent("shown-this-once");
  }
});

test("another endpoint and another topic are in the snippets", async () => {
  const { user } = visit(`${CLUSTER}/connect`);
  const block = await screen.findByTestId("code Produce");
  expect(block).toHaveTextContent("127.0.0.1:9092");
  expect(block).toHaveTextContent("payments");
  await user.click(screen.getByRole("radio", { name: "TLS" }));
  expect(screen.getByTestId("code Produce")).toHaveTextContent("kafka.localhost:9443");
  await user.type(screen.getByRole("textbox", { name: "Path of ca.pem" }), ".bak");
  expect(screen.getByTestId("code Produce")).toHaveTextContent("ca.pem.bak");
});

test("a topic is chosen from those of the cluster", async () => {
  const { user } = visit(`${CLUSTER}/connect`);
  await screen.findByTestId("code Produce");
  await choose(user, screen, "Topic", "payments");
  expect(screen.getByTestId("code Produce")).toHaveTextContent("-t payments");
});

test("a credential that is refused shows the problem's text", async () => {
  refuse(CREATE, { status: 403, code: "limit_reached", detail: "The cluster has 1,000." });
  const { user } = visit(`${CLUSTER}/connect`);
  await user.click(
    await screen.findByRole("button", { name: "Create a credential and fill it in" }),
  );
  const alert = await screen.findByRole("alert");
  expect(alert).toHaveTextContent("The credential was not created");
  expect(alert).toHaveTextContent("The cluster has 1,000.");
});

test("a viewer makes no credential", async () => {
  actAs("viewer");
  visit(`${CLUSTER}/connect`);
  const button = await screen.findByRole("button", { name: /^Create a credential/ });
  expect(button).toHaveAccessibleDescription(/yours is viewer/);
});
