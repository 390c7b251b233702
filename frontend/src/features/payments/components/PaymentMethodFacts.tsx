import { Stack } from "@mantine/core";
import type { ReactElement } from "react";
import { Empty } from "@/components/Empty";
import { Facts } from "@/components/Facts";
import { Note } from "@/components/Note";
import type { PaymentMethod } from "@/lib/api/types";
import { brandName, expiryWords } from "../words";
import { CardButtons, GiveCard } from "./CardButtons";

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
        number never comes here.
      </Empty>
    );
  }
  const expires = expiryWords(card.expires_month, card.expires_year);
  return (
    <Stack gap="md">
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
