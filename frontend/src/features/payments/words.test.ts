import { expect, test } from "vitest";
import { exampleOf } from "@/testing/contract";
import {
  brandName,
  dunned,
  expiryWords,
  outcomeWords,
  readableReference,
  refusalWords,
} from "./words";

const declined = exampleOf("GET /api/v1/account", "ACardWasDeclined");
// A moment of the examples: the card is charged again after it.
const NOW = Date.parse("2026-12-04T12:00:00Z");
const attempt = exampleOf("POST /api/v1/invoices/{id}/pay");

test("nothing is said where nothing is unpaid", () => {
  expect(dunned(exampleOf("GET /api/v1/account"))).toBeUndefined();
});

test("what is unpaid is said with what happens next, in the order of time", () => {
  expect(dunned(declined, NOW)).toEqual({
    owed: "$12.50 of an invoice is unpaid since 4 Dec 2026.",
    now: "The card was declined. Nothing is held up so far.",
    next: [
      "The card is charged again on 5 Dec 2026, 00:01 UTC.",
      "Unless it is paid, on 18 Dec 2026, 00:01 UTC all clusters will refuse produce and fetch.",
    ],
  });
  const late = { ...declined, next_charge_at: "2026-12-20T00:00:00Z" };
  expect(dunned(late, NOW)?.next[1]).toMatch(/^The card is charged again/);
});

test("what is due by now is said to be charged now", () => {
  const due = { ...declined, next_charge_at: "2026-12-04T11:59:00Z" };
  expect(dunned(due, NOW)?.next[0]).toBe("The card is being charged again.");
});

test("why a card does not pay is said without a name", () => {
  expect(refusalWords("")).toBeUndefined();
  expect(refusalWords("unpaid")).toMatch(/^This card has unpaid invoices in another organization/);
});

test("who has no card does not read when it is charged", () => {
  const next = dunned({ ...declined, failure: "no_payment_method" })?.next;
  expect(next).toHaveLength(1);
  expect(next?.[0]).toMatch(/^Unless it is paid/);
});

test("several invoices are counted, and each stage says what holds", () => {
  const several = { ...declined, unpaid_invoice_ids: ["inv_a", "inv_b"], failure: "" as const };
  expect(dunned(several)?.owed).toBe("$12.50 of 2 invoices are unpaid since 4 Dec 2026.");
  const words = (["suspended", "asleep", "deleted"] as const).map(
    (stage) => dunned({ ...several, stage })?.now ?? "",
  );
  expect(words[0]).toMatch(/refuse produce and fetch/);
  expect(words[1]).toMatch(/No client reaches the clusters/);
  expect(words[2]).toMatch(/were deleted/);
  const over = { ...several, stage: "deleted" as const, next_step: null, next_charge_at: null };
  expect(dunned(over)?.next).toEqual([]);
});

test("who has roles in projects alone reads what holds and what follows, and no amounts", () => {
  const hidden = {
    unpaid_minor: null,
    open_minor: null,
    credit_minor: null,
    unpaid_invoice_ids: [],
  };
  const words = dunned({ ...declined, ...hidden });
  expect(words?.owed).toBe("An invoice of the organization is unpaid since 4 Dec 2026.");
  expect(words?.next).toEqual(dunned(declined, NOW)?.next);
});

test("what became of a payment is said unless it succeeded", () => {
  expect(outcomeWords({ ...attempt, state: "succeeded" })).toBeUndefined();
  expect(outcomeWords(attempt)).toMatch(/bank's page/);
  const failed = { state: "failed", failure: "declined", message: "Insufficient funds." } as const;
  expect(outcomeWords({ ...attempt, ...failed })).toBe(
    "The card was declined. Insufficient funds.",
  );
  const twice = { ...failed, message: "Your card was declined." };
  expect(outcomeWords({ ...attempt, ...twice })).toBe("Your card was declined.");
  expect(outcomeWords({ ...attempt, state: "canceled" })).toMatch(/Nothing was charged/);
  expect(outcomeWords({ ...attempt, state: "unknown" })).toMatch(/is being made/);
});

test("a reference is written in groups, a card by its brand and month", () => {
  expect(readableReference("RF97FR2026000042")).toBe("RF97 FR20 2600 0042");
  expect(readableReference("RF97FR202600004")).toBe("RF97 FR20 2600 004");
  expect(brandName("visa")).toBe("Visa");
  expect(brandName("cartes_bancaires")).toBe("Card");
  expect(expiryWords(3, 2030)).toBe("03/2030");
  expect(expiryWords(null, 2030)).toBeUndefined();
});
