import { screen, within } from "@testing-library/react";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { exampleOf } from "@/testing/contract";
import { answer, change, empty, onlySentTo, refuse, sentTo } from "@/testing/server";
import { actAs, firstRow, visit } from "@/testing/visit";

const METHOD = "GET /api/v1/payment-method";
const ACCOUNT = "GET /api/v1/account";
const PAY = "POST /api/v1/invoices/{id}/pay";
const INVOICE = "GET /api/v1/invoices/{id}";
const ADVANCE = "POST /api/v1/payment-method/advance";
const ID = "inv_3k2jq7v5xw4mzn6yt2ba";

const left = vi.fn();

beforeEach(() => {
  vi.spyOn(location, "assign").mockImplementation(left);
});

afterEach(() => {
  vi.restoreAllMocks();
  left.mockReset();
});

/** Has the account say that a card was declined; `edit` changes it. */
function declined(edit?: Partial<ReturnType<typeof exampleOf<typeof ACCOUNT>>>): void {
  answer(ACCOUNT, { ...exampleOf(ACCOUNT, "ACardWasDeclined"), ...edit });
}

const banner = async (): Promise<ReturnType<typeof within>> =>
  within(await screen.findByRole("region", { name: "Unpaid invoices" }));

test("the card that is charged is shown, and changed at Stripe", async () => {
  const { user } = visit("/billing");
  expect(await screen.findByText("Visa, ends in 4242")).toBeVisible();
  expect(screen.getByText("12/2030")).toBeVisible();
  await user.click(screen.getByRole("button", { name: "See or remove it at Stripe" }));
  await expect.poll(() => left.mock.calls).toHaveLength(1);
  await user.click(screen.getByRole("button", { name: "Use another card" }));
  await expect.poll(() => left.mock.calls).toHaveLength(2);
  expect(left).toHaveBeenCalledWith("https://checkout.stripe.com/c/pay/cs_test_a1");
  expect(sentTo("POST /api/v1/payment-method/setup")).toHaveLength(1);
});

test("without a card one is given on a page of Stripe", async () => {
  change(METHOD, (method) => Object.assign(method, { card: null, can_manage: false }));
  const { user } = visit("/billing");
  await user.click(await screen.findByRole("button", { name: "Add a card" }));
  await expect.poll(() => left.mock.calls).toHaveLength(1);
});

test("a card that does not pay for the organization is said to be one, and why", async () => {
  change(METHOD, (method) => Object.assign(method, { refusal: "unpaid" }));
  visit("/billing");
  expect(await screen.findByText(/has unpaid invoices in another organization/)).toBeVisible();
  expect(screen.getByText(/what is left of its trial/)).toBeVisible();
});

test("what could not be charged in advance is paid by a button, or leads to the bank", async () => {
  change(METHOD, (method) => Object.assign(method, { advance_minor: 2600 }));
  const { user } = visit("/billing");
  await user.click(await screen.findByRole("button", { name: "Pay $26.00 in advance" }));
  expect(await screen.findByText("$26.00 is paid")).toBeVisible();
  const url = "https://hooks.stripe.com/redirect/authenticate/src_2";
  answer(ADVANCE, { ...exampleOf(ADVANCE), state: "requires_action", url });
  await user.click(screen.getByRole("button", { name: "Pay $26.00 in advance" }));
  await expect.poll(() => left.mock.calls).toEqual([[url]]);
});

test("a page of Stripe that does not open is said so", async () => {
  const detail = "The payment service does not answer.";
  refuse("POST /api/v1/payment-method/setup", { status: 503, code: "unavailable", detail });
  const { user } = visit("/billing");
  await user.click(await screen.findByRole("button", { name: "Use another card" }));
  expect(await screen.findByRole("alert")).toHaveTextContent(detail);
  expect(left).not.toHaveBeenCalled();
});

test("who may not see invoices reads what is unpaid, and is offered no payment", async () => {
  declined({ unpaid_minor: null, open_minor: null, credit_minor: null, unpaid_invoice_ids: [] });
  visit("/clusters");
  const shown = await banner();
  expect(shown.getByText(/An invoice of the organization is unpaid/)).toBeVisible();
  expect(shown.getByText(/all clusters will refuse produce and fetch/)).toBeVisible();
  expect(shown.queryByRole("button")).toBeNull();
});

test("a card that was just given is waited for", async () => {
  change(METHOD, (method) => Object.assign(method, { card: null }));
  visit("/billing?card=given");
  expect(await screen.findByText(/^Stripe has the card\./)).toBeVisible();
});

test("a page of Stripe that was left without a card changes nothing", async () => {
  visit("/billing?card=canceled");
  expect(await screen.findByText(/^No card was given\./)).toBeVisible();
});

test("where nobody collects, nothing is to be paid", async () => {
  change(METHOD, (method) => Object.assign(method, { collector: "none", card: null }));
  change(ACCOUNT, (account) => (account.collector = "none"));
  visit("/billing");
  expect(await screen.findByText(/^Nobody collects invoices here\./)).toBeVisible();
  expect(screen.queryByText("To be paid")).toBeNull();
});

test("payments are listed with the invoices that they paid", async () => {
  visit("/billing");
  const cells = await firstRow("Payments");
  expect(cells[1]).toBe("Card");
  expect(cells[2]).toBe("FR-2026-000042, $12.50");
  expect(cells[5]).toBe("$12.50");
  const link = screen.getByRole("link", { name: "FR-2026-000042" });
  expect(link).toHaveAttribute("href", `/invoices/${ID}`);
});

test("without a payment it is said what will be listed", async () => {
  empty("GET /api/v1/payments");
  visit("/billing");
  expect(await screen.findByText("No payment yet")).toBeVisible();
});

test("who may not see money reads why", async () => {
  actAs("developer");
  visit("/billing");
  expect(await screen.findByText(/yours is developer/)).toBeVisible();
  expect(sentTo(METHOD)).toEqual([]);
});

test("no banner is shown where nothing is unpaid", async () => {
  visit("/clusters");
  await firstRow("Clusters");
  expect(screen.queryByRole("region", { name: "Unpaid invoices" })).toBeNull();
});

test("what is unpaid is above every page with what follows, and paid by one click", async () => {
  declined({ unpaid_invoice_ids: ["inv_5xw4mzn6yt2ba3k2jq7v", ID] });
  answer(PAY, { ...exampleOf(PAY), state: "succeeded", url: null });
  const { user } = visit("/clusters");
  const words = await banner();
  expect(words.getByText(/\$12\.50 of 2 invoices are unpaid since 4 Dec 2026\./)).toBeVisible();
  expect(words.getByText(/on 18 Dec 2026, 00:01 UTC all clusters will refuse/)).toBeVisible();
  answer(ACCOUNT, exampleOf(ACCOUNT));
  await user.click(words.getByRole("button", { name: "Pay $12.50" }));
  expect(await screen.findByText("$12.50 is paid")).toBeVisible();
  const { pathname, body } = onlySentTo(PAY);
  expect(pathname).toBe(`/api/v1/invoices/${ID}/pay`);
  expect(body).toEqual({ with_older: true });
  const shown = (): HTMLElement | null => screen.queryByRole("region", { name: "Unpaid invoices" });
  await expect.poll(shown).toBeNull();
});

test("a bank that asks to confirm the payment is led to", async () => {
  declined();
  const { user } = visit("/clusters");
  await user.click((await banner()).getByRole("button", { name: "Pay $12.50" }));
  const url = "https://hooks.stripe.com/redirect/authenticate/src_1";
  await expect.poll(() => left.mock.calls).toEqual([[url]]);
});

test("a payment that fails says why", async () => {
  declined();
  answer(PAY, {
    ...exampleOf(PAY),
    state: "failed",
    url: null,
    failure: "declined",
    message: "Your card has insufficient funds.",
  });
  const { user } = visit("/clusters");
  await user.click((await banner()).getByRole("button", { name: "Pay $12.50" }));
  expect(await screen.findByText(/Your card has insufficient funds\./)).toBeVisible();
});

test("a payment that is refused says what to do", async () => {
  declined();
  const detail = "Another payment of the organization has not ended yet.";
  refuse(PAY, { status: 409, code: "payment_in_progress", detail });
  const { user } = visit("/clusters");
  await user.click((await banner()).getByRole("button", { name: "Pay $12.50" }));
  expect(await screen.findByRole("alert")).toHaveTextContent(detail);
});

test("without a card the banner asks for one", async () => {
  declined({ failure: "no_payment_method" });
  const { user } = visit("/clusters");
  await user.click((await banner()).getByRole("button", { name: "Add a card" }));
  await expect.poll(() => left.mock.calls).toHaveLength(1);
});

test("where the card was removed since, paying leads to another one", async () => {
  declined();
  refuse(PAY, { status: 409, code: "no_payment_method", detail: "There is no card." });
  const { user } = visit("/clusters");
  const words = await banner();
  await user.click(words.getByRole("button", { name: "Pay $12.50" }));
  expect(await words.findByText("There is no card that could be charged.")).toBeVisible();
  expect(words.queryByRole("button", { name: "Pay $12.50" })).toBeNull();
  await user.click(words.getByRole("button", { name: "Add a card" }));
  await expect.poll(() => left.mock.calls).toHaveLength(1);
});

test("who may not pay sees the banner, and who may", async () => {
  actAs("developer");
  declined({ stage: "suspended" });
  visit("/clusters");
  const words = await banner();
  expect(words.getByText(/All clusters refuse produce and fetch/)).toBeVisible();
  const pay = words.getByRole("button", { name: "Pay $12.50" });
  expect(pay).toHaveAccessibleDescription(/yours is developer/);
});

test("by bank transfer the banner leads to the invoice, which says how to pay", async () => {
  declined({ collector: "transfer", failure: "overdue", next_charge_at: null });
  change(INVOICE, (invoice) => Object.assign(invoice, { state: "overdue", open_minor: 30 }));
  const { user, address } = visit("/clusters");
  await user.click((await banner()).getByRole("link", { name: "How to pay" }));
  expect(await screen.findByText("RF97 FR20 2600 0042")).toBeVisible();
  expect(screen.getByText("$0.30 was to be paid by 18 Dec 2026.")).toBeVisible();
  expect(address()).toBe(`/invoices/${ID}`);
});

test("an invoice is paid on its page", async () => {
  answer(PAY, { ...exampleOf(PAY), state: "succeeded", url: null });
  const { user } = visit(`/invoices/${ID}`);
  await user.click(await screen.findByRole("button", { name: "Pay $0.30" }));
  expect(await screen.findByText("$0.30 is paid")).toBeVisible();
  expect(onlySentTo(PAY).body).toEqual({ with_older: false });
});

test("who comes back from the bank sees whether the payment came in", async () => {
  visit(`/invoices/${ID}?payment=returned`);
  expect(await screen.findByText(/^Your bank was asked\./)).toBeVisible();
});

test("a paid invoice shows what paid it, and asks for nothing", async () => {
  change(INVOICE, (invoice) =>
    Object.assign(invoice, { state: "paid", open_minor: 0, paid_at: "2026-12-10T00:00:00Z" }),
  );
  visit(`/invoices/${ID}?payment=returned`);
  expect(await screen.findByText("The payment came in. This invoice is paid.")).toBeVisible();
  expect((await firstRow("Payments of this invoice"))[0]).toBe("Bank transfer");
  expect(screen.queryByRole("button", { name: /^Pay / })).toBeNull();
});
