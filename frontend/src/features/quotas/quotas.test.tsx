import { screen } from "@testing-library/react";
import { expect, test } from "vitest";
import { empty, fieldError, onlySentTo, refuse, sentTo } from "@/testing/server";
import { actAs, choose, CLUSTER, dialog, firstRow, visit } from "@/testing/visit";

const QUOTAS = `${CLUSTER}/quotas`;
const LIST = "GET /api/v1/clusters/{cluster_id}/quotas";
const SET = "PUT /api/v1/clusters/{cluster_id}/quotas";
const USER = "cred_5xw4mzn6yt2ba3k2jq7v";

test("a quota is listed with the name of its credential", async () => {
  visit(QUOTAS);
  expect((await firstRow("Quotas")).slice(0, 5)).toEqual([
    "checkout",
    "1.0 MiB/s",
    "2.0 MiB/s",
    "–",
    "10",
  ]);
});

test("without a quota the same by Kafka's own tool is shown", async () => {
  empty(LIST);
  visit(QUOTAS);
  expect(await screen.findByText("No quota")).toBeVisible();
  expect(screen.getByTestId("code Or by Kafka's own tool")).toHaveTextContent("127.0.0.1:9092");
});

test("a list that is refused shows the problem's text", async () => {
  refuse(LIST, { status: 503, code: "unavailable", detail: "The metadata cannot be read now." });
  visit(QUOTAS);
  expect(await screen.findByText(/The metadata cannot be read now/)).toBeVisible();
});

test("a rate is sent in bytes, and what is no rate is not", async () => {
  const { user } = visit(`${QUOTAS}?panel=new`);
  const panel = await dialog("New quota");
  const set = panel.getByRole("button", { name: "Set quotas" });
  expect(set).toBeDisabled();
  await choose(user, panel, "Credential", /^checkout/);
  await user.type(panel.getByRole("textbox", { name: "Produce, bytes per second" }), "10 MiB");
  const fetch = panel.getByRole("textbox", { name: "Fetch, bytes per second" });
  await user.type(fetch, "fast");
  await user.click(set);
  expect(await panel.findByText("Bytes per second, such as 10 MiB")).toBeVisible();
  expect(sentTo(SET)).toEqual([]);
  await user.clear(fetch);
  await user.click(set);
  await expect.poll(() => sentTo(SET)).toHaveLength(1);
  expect(onlySentTo(SET).body).toMatchObject({ user: USER, produce_bytes_per_second: 10_485_760 });
});

test("an address is limited by new connections alone", async () => {
  const errors = [fieldError("/ip", "This is no address.")];
  refuse(SET, { status: 422, code: "invalid", detail: "The body is not valid.", errors });
  const { user } = visit(`${QUOTAS}?panel=new`);
  const panel = await dialog("New quota");
  await user.click(panel.getByRole("radio", { name: /^Address|^IP/ }));
  const ip = panel.getByRole("textbox", { name: "IP address" });
  await user.type(ip, "somewhere");
  await user.type(panel.getByRole("textbox", { name: "New connections per second" }), "5");
  await user.click(panel.getByRole("button", { name: "Set quotas" }));
  expect(await panel.findByRole("alert")).toHaveTextContent("The quotas were not set");
  expect(ip).toHaveAccessibleDescription(/This is no address/);
});

test("a removed quota is put back from its notice", async () => {
  const { user } = visit(QUOTAS);
  await user.click(await screen.findByRole("button", { name: /^Remove the quotas of/ }));
  expect(await screen.findByText("The quotas are removed")).toBeVisible();
  await user.click(screen.getByRole("button", { name: "Undo" }));
  await expect
    .poll(() => sentTo(SET)[0]?.body)
    .toMatchObject({ user: USER, produce_bytes_per_second: 1_048_576, connections: 10 });
});

test("a viewer looks at a quota, and sets none", async () => {
  actAs("viewer");
  visit(`${QUOTAS}?panel=qta_w4mzn6yt2ba3k2jq7v5x`);
  const panel = await dialog(/^Quotas of/);
  expect(panel.getByRole("button", { name: "Save" })).toHaveAttribute("aria-disabled", "true");
});
