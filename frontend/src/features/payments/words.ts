/** What is owed, and what follows from it, in sentences. Times of money are in UTC. */
import type {
  Account,
  DunningStage,
  FailureKind,
  InvoicePayment,
  PaymentAttempt,
  PaymentMethod,
} from "@/lib/api/types";
import { formatMoney } from "@/lib/format/money";
import { utcDay, utcTime } from "@/lib/format/utc";

/** What holds at a stage of the calendar after an unpaid invoice. */
const HOLDS: Record<DunningStage, string> = {
  paid: "",
  unpaid: "Nothing is held up so far.",
  suspended: "All clusters refuse produce and fetch until it is paid.",
  asleep: "No client reaches the clusters until it is paid. Their data is kept.",
  deleted: "The clusters were deleted. Each can be restored for seven days after its deletion.",
};

/** What a step does, behind "Unless it is paid, on … ". */
const STEPS: Record<DunningStage, string> = {
  paid: "nothing happens",
  unpaid: "nothing happens",
  suspended: "all clusters will refuse produce and fetch",
  asleep: "all clusters will be put to sleep, and no client will reach them",
  deleted: "all clusters will be deleted, and can be restored for seven days",
};

const FAILURES: Record<FailureKind, string> = {
  declined: "The card was declined.",
  needs_authentication: "The bank asks you to confirm the payment.",
  no_payment_method: "There is no card that could be charged.",
  refused: "The payment could not be made, which is not your fault.",
  overdue: "It did not come in by the day on which it was due.",
  reopened: "A payment was refunded, or taken back by its bank.",
};

/** Returns why an invoice is not paid, as a sentence. */
export const failureWords = (failure: FailureKind): string => FAILURES[failure];

/** Formats an instant: `18 Dec 2026, 00:01 UTC`. */
export function utcMoment(at: string): string {
  const instant = new Date(at);
  return `${utcDay(instant)}, ${utcTime(instant)} UTC`;
}

/** What the banner above every page says of unpaid invoices. */
export interface Dunned {
  /** How much is unpaid, and since when. */
  owed: string;
  /** Why, and what holds meanwhile. */
  now: string;
  /** What happens next, and when; in the order of time. */
  next: string[];
}

/** Returns what is unpaid, and what follows after `now`; undefined where nothing is unpaid. */
export function dunned(account: Account, now = Date.now()): Dunned | undefined {
  const { stage, unpaid_since, failure } = account;
  if (stage === "paid" || unpaid_since === null) return undefined;
  return {
    owed: `${owedBy(account)} unpaid since ${utcDay(new Date(unpaid_since))}.`,
    now: [failure && failureWords(failure), HOLDS[stage]].filter(Boolean).join(" "),
    next: nextOf(account, now),
  };
}

/** Who has roles in projects alone is shown no amounts. */
function owedBy({ unpaid_minor, currency, unpaid_invoice_ids: { length } }: Account): string {
  if (unpaid_minor === null) return "An invoice of the organization is";
  const amount = formatMoney(unpaid_minor, currency);
  return length > 1 ? `${amount} of ${String(length)} invoices are` : `${amount} of an invoice is`;
}

function nextOf({ failure, next_charge_at, next_step }: Account, now: number): string[] {
  const sentences: { at: string; words: string }[] = [];
  // Without a card nothing is charged then, but for one that is added meanwhile.
  if (next_charge_at !== null && failure !== "no_payment_method") {
    // After another card was given, it is due at once: a charge is made within a minute.
    const words =
      Date.parse(next_charge_at) > now
        ? `The card is charged again on ${utcMoment(next_charge_at)}.`
        : "The card is being charged again.";
    sentences.push({ at: next_charge_at, words });
  }
  if (next_step !== null) {
    const { stage, at } = next_step;
    const words = `Unless it is paid, on ${utcMoment(at)} ${STEPS[stage]}.`;
    sentences.push({ at, words });
  }
  return sentences.sort((a, b) => Date.parse(a.at) - Date.parse(b.at)).map(({ words }) => words);
}

/** Why a card does not pay for the organization yet, which has its trial until then. */
const REFUSALS: Record<Exclude<PaymentMethod["refusal"], "">, string> = {
  unpaid:
    "This card has unpaid invoices in another organization. Pay them there, and the card pays " +
    "here within a minute.",
  small_debts:
    "This card owes small amounts in many other organizations. Once some of them are paid, the " +
    "card pays here.",
  disputed:
    "A payment by this card is disputed at its bank. Once the bank has decided, the card pays " +
    "here.",
  unproved:
    "This card has paid too little so far for what other organizations use with it. Once it has " +
    "paid there, it pays here.",
};

/** Returns why a card does not pay for the organization; undefined where it does. */
export const refusalWords = (refusal: PaymentMethod["refusal"]): string | undefined =>
  refusal === "" ? undefined : REFUSALS[refusal];

/** Returns what became of a payment, where it is not over or was in vain. */
export function outcomeWords({ state, failure, message }: PaymentAttempt): string | undefined {
  if (state === "succeeded") return undefined;
  if (state === "requires_action") return "Your bank's page opens, on which you confirm it.";
  if (state === "failed") {
    // The bank's text often says itself that the card was declined.
    const isSaid = failure === "declined" && message.includes("declined");
    return [failure && !isSaid && failureWords(failure), message].filter(Boolean).join(" ");
  }
  if (state === "canceled") return "The payment was canceled. Nothing was charged.";
  return "The payment is being made. This page shows when it is over.";
}

const METHODS: Record<InvoicePayment["method"], string> = {
  card: "Card",
  transfer: "Bank transfer",
  other: "Other",
  credit: "Credit",
};

/** Returns the name of a way to pay. */
export const methodName = (method: InvoicePayment["method"]): string => METHODS[method];

/** Writes a bank reference in groups of four, as banks do: `RF97 FR20 2600 0042`. */
export const readableReference = (reference: string): string =>
  reference.replace(/(.{4})(?=.)/g, "$1 ");

const BRANDS: Record<string, string> = {
  amex: "American Express",
  diners: "Diners Club",
  discover: "Discover",
  jcb: "JCB",
  mastercard: "Mastercard",
  unionpay: "UnionPay",
  visa: "Visa",
};

/** Returns the name of a card's brand. */
export const brandName = (brand: string): string => BRANDS[brand] ?? "Card";

/** Formats the month in which a card expires: `12/2030`; undefined where it is not known. */
export function expiryWords(month: number | null, year: number | null): string | undefined {
  if (month === null || year === null) return undefined;
  return `${String(month).padStart(2, "0")}/${String(year)}`;
}
