import { Stack } from "@mantine/core";
import type { ReactElement } from "react";
import { Empty } from "@/components/Empty";
import { Facts } from "@/components/Facts";
import { Note, NoteMore } from "@/components/Note";
import type { PaymentMethod } from "@/lib/api/types";
import { brandName, expiryWords, refusalWords } from "../words";
import { CardButtons, GiveCard } from "./CardButtons";
import { PayInAdvance } from "./PayInAdvance";

/** How the organization pays: its card, or what to do without one. */
export function PaymentMethodFacts({ method }: { method: PaymentMethod }): ReactElement {
  const { collector, card, can_manage } = method;
  if (collector === "none") {
    return (
      <Note tone="quiet">
        Nobody collects invoices here. They say what was used, and nothing is to be paid by this
        page.
      </Note>
    );
  }
  if (collector === "transfer") {
    return (
      <Note tone="quiet">
        Invoices are paid by bank transfer. Each names the account, its reference, and the day by
        which it is due.
      </Note>
    );
  }
  if (card === null) {
    return (
      <Empty title="No card" action={<GiveCard />}>
        Invoices are charged to a card when they are issued. It is given on a page of Stripe: its
        number never comes here. What was used in the trial stays free: from the card on, the
        month's free quantities begin anew. A new card may be charged in advance in its first
        months.
      </Empty>
    );
  }
  const refusal = refusalWords(method.refusal);
  const expires = expiryWords(card.expires_month, card.expires_year);
  return (
    <Stack gap="md">
      {refusal && (
        <Note tone="failed">
          <strong>The card does not pay for this organization.</strong> {refusal}
          <NoteMore>
            Until then, or until there is another card, the organization has what is left of its
            trial.
          </NoteMore>
        </Note>
      )}
      {method.advance_minor !== null && (
        <PayInAdvance amountMinor={method.advance_minor} currency={method.currency} />
      )}
      <Facts
        items={[
          ["Card", `${brandName(card.brand)}, ends in ${card.last4}`],
          ["Expires", expires ?? "not known"],
          ["Charged", "by itself when an invoice is issued"],
        ]}
      />
      <CardButtons canManage={can_manage} />
    </Stack>
  );
}
