import { screen } from "@testing-library/react";
import { beforeEach, expect, test } from "vitest";
import { change, empty, fieldError, onlySentTo, refuse, sentTo } from "@/testing/server";
import { dialog, firstRow, visit } from "@/testing/visit";

const PAGE = "/staff/money";
const ENTER = "POST /api/v1/staff/payments";
const INVOICE = "inv_3k2jq7v5xw4mzn6yt2ba";

beforeEach(() => {
  change("GET /api/v1/session", ({ user }) => {
    if (user) user.is_staff = true;
  });
});

test("who owes, what failed and what does not reconcile is listed", async () => {
  visit(PAGE);
  const owed = await firstRow("Owed");
  expect(owed.slice(0, 6)).toEqual([
    "FR-2026-000042",
    "Acme",
    "Overdue",
    "18 Dec 2026",
    "RF97FR2026000042",
    "$30.00",
  ]);
  const failed = (await firstRow("Failed charges")).join(" ");
  expect(failed).toContain("declined (insufficient_funds) Your card has insufficient funds.");
  const difference = (await firstRow("What does not reconcile")).join(" ");
  expect(difference).toContain("Stripe has a payment that is not entered here");
  expect(difference).toContain("$12.50");
  expect((await firstRow("Comparisons with Stripe")).join(" ")).toContain("Differences");
  expect((await firstRow("Payments")).join(" ")).toContain("2026121000042");
});

test("only what failed, and what lasts, is asked for", async () => {
  visit(PAGE);
  await firstRow("What does not reconcile");
  await firstRow("Failed charges");
  expect(sentTo("GET /api/v1/staff/payment-attempts")[0]?.query).toMatchObject({ failed: "true" });
  expect(sentTo("GET /api/v1/staff/reconciliation")[0]?.query).toEqual({ open: "true" });
});

test("a payment of an invoice is entered with its reference and open amount", async () => {
  const { user, address } = visit(PAGE);
  const name = { name: "Enter payment of FR-2026-000042" };
  await user.click(await screen.findByRole("button", name));
  expect(address()).toBe(`${PAGE}?panel=payment-${INVOICE}`);
  const panel = await dialog("Enter a payment");
  expect(panel.getByRole("textbox", { name: "Reference" })).toHaveValue("RF97FR2026000042");
  const amount = panel.getByRole("textbox", { name: "Amount" });
  expect(amount).toHaveValue("30.00");
  await user.clear(amount);
  await user.type(amount, "10");
  await user.click(panel.getByRole("button", { name: "Enter payment" }));
  expect(panel.getByText("Enter the bank's id of the payment")).toBeVisible();
  expect(sentTo(ENTER)).toEqual([]);
  await user.type(panel.getByRole("textbox", { name: "The bank's id" }), "2026121000042");
  await user.click(panel.getByRole("button", { name: "Enter payment" }));
  expect(await screen.findByText("$10.00 of Acme is entered")).toBeVisible();
  expect(onlySentTo(ENTER).body).toEqual({
    reference: "RF97FR2026000042",
    amount_minor: 1000,
    currency: "USD",
    external_id: "2026121000042",
    received_at: "2026-11-21T00:00:00Z",
    note: "",
  });
});

test("a payment without a reference names the organization", async () => {
  refuse(ENTER, {
    status: 422,
    code: "validation_failed",
    detail: "The request has invalid values",
    errors: [fieldError("/external_id", "It was entered with another amount.")],
  });
  const { user } = visit(`${PAGE}?panel=payment`);
  const panel = await dialog("Enter a payment");
  const type = (field: string, text: string): Promise<void> =>
    user.type(panel.getByRole("textbox", { name: field }), text);
  await type("Reference", "org_3k2jq7v5xw4mzn6yt2ba");
  await type("Amount", "1250");
  await type("Currency", "JPY");
  await type("The bank's id", "1");
  await user.click(panel.getByRole("button", { name: "Enter payment" }));
  expect(await panel.findByRole("alert")).toHaveTextContent("It was entered with another amount.");
  expect(onlySentTo(ENTER).body).toMatchObject({
    organization_id: "org_3k2jq7v5xw4mzn6yt2ba",
    amount_minor: 1250,
    currency: "JPY",
  });
});

test("an invoice is written off with a reason", async () => {
  const { user } = visit(`${PAGE}?panel=write-off-${INVOICE}`);
  const panel = await dialog("Write an invoice off");
  expect(panel.getByText(/\$30\.00 of FR-2026-000042, Acme, are given up/)).toBeVisible();
  await user.click(panel.getByRole("button", { name: "Write it off" }));
  expect(panel.getByText("Say why")).toBeVisible();
  await user.type(panel.getByRole("textbox", { name: "Reason" }), "Insolvent.");
  await user.click(panel.getByRole("button", { name: "Write it off" }));
  expect(await screen.findByText("FR-2026-000042 is written off")).toBeVisible();
  const body = { invoice_id: INVOICE, reason: "Insolvent." };
  expect(onlySentTo("POST /api/v1/staff/write-offs").body).toEqual(body);
});

test("no more is refunded than is left of the payment", async () => {
  const { user } = visit(PAGE);
  await user.click(await screen.findByRole("button", { name: /^Refund pay_/ }));
  const panel = await dialog("Refund");
  const amount = panel.getByRole("textbox", { name: "Amount, USD" });
  expect(amount).toHaveValue("10.00");
  await user.clear(amount);
  await user.type(amount, "10.01");
  await user.type(panel.getByRole("textbox", { name: "The bank's id" }), "2026121100007");
  await user.type(panel.getByRole("textbox", { name: "Reason" }), "Paid twice.");
  await user.click(panel.getByRole("button", { name: "Enter refund" }));
  expect(panel.getByText("Enter an amount up to $10.00")).toBeVisible();
  await user.clear(amount);
  await user.type(amount, "10");
  await user.click(panel.getByRole("checkbox"));
  await user.click(panel.getByRole("button", { name: "Enter refund" }));
  expect(await screen.findByText("The refund of $10.00 is entered")).toBeVisible();
  expect(onlySentTo("POST /api/v1/staff/refunds").body).toEqual({
    payment_id: "pay_4mzn6yt2ba3k2jq7v5w5",
    amount_minor: 1000,
    external_id: "2026121100007",
    reason: "Paid twice.",
    is_goodwill: true,
  });
});

test("credit is granted to an organization, once for a name", async () => {
  const { user } = visit(PAGE);
  await user.click(await screen.findByRole("button", { name: "Grant credit" }));
  const panel = await dialog("Grant credit");
  const type = (field: string, text: string): Promise<void> =>
    user.type(panel.getByRole("textbox", { name: field }), text);
  await type("Organization's id", "org_3k2jq7v5xw4mzn6yt2ba");
  await type("Amount", "5");
  await type("Currency", "USD");
  await type("Reason", "Sorry for the outage.");
  await type("Name", "ticket 4711");
  await user.click(panel.getByRole("button", { name: "Grant credit" }));
  expect(await screen.findByText("$5.00 of credit is granted to Acme")).toBeVisible();
  expect(onlySentTo("POST /api/v1/staff/credits").body).toEqual({
    organization_id: "org_3k2jq7v5xw4mzn6yt2ba",
    amount_minor: 500,
    currency: "USD",
    reason: "Sorry for the outage.",
    external_id: "ticket 4711",
  });
});

test("each part that is empty or cannot be read says so by itself", async () => {
  empty("GET /api/v1/staff/reconciliation");
  refuse("GET /api/v1/staff/receivables", {
    status: 503,
    code: "unavailable",
    detail: "Not now.",
  });
  visit(PAGE);
  expect(await screen.findByText("There is none at the moment.")).toBeVisible();
  expect(await screen.findByText("Owed could not be read")).toBeVisible();
  expect((await firstRow("Failed charges")).join(" ")).toContain("declined");
});
