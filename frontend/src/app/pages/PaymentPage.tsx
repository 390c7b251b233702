import { Skeleton, Stack } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useSearch } from "@tanstack/react-router";
import type { ReactElement } from "react";
import { Answered } from "@/components/Answered";
import { Empty } from "@/components/Empty";
import { Listed } from "@/components/Listed";
import { Note } from "@/components/Note";
import { PageHead } from "@/components/PageHead";
import { Section } from "@/components/Section";
import {
  accountQuery,
  paymentListQuery,
  paymentMethodQuery,
} from "@/features/payments/api/payments";
import { BalanceTiles } from "@/features/payments/components/BalanceTiles";
import { PaymentMethodFacts } from "@/features/payments/components/PaymentMethodFacts";
import { PaymentTable } from "@/features/payments/components/PaymentTable";
import { useRefusal } from "@/lib/permissions";

/** How the organization pays, what it owes, and what it paid. */
export function PaymentPage(): ReactElement {
  const refused = useRefusal("billing");
  return (
    <>
      <PageHead title="Payment" lead="How invoices are paid, what is owed, and what came in." />
      {refused ? <Note tone="quiet">{refused}</Note> : <Parts />}
    </>
  );
}

function Parts(): ReactElement {
  const account = useQuery(accountQuery);
  const method = useQuery(paymentMethodQuery);
  const payments = useQuery(paymentListQuery);
  const { card } = useSearch({ from: "/frame/billed/billing" });
  return (
    <>
      <Answered queries={[account]} what="What is owed could not be read">
        {account.data?.collector !== "none" && <BalanceTiles account={account.data} />}
      </Answered>
      <Section title="Payment method">
        <Answered queries={[method]} what="The payment method could not be read">
          {method.data ? (
            <Stack gap="md" maw={640}>
              {card === "given" && method.data.card === null && (
                <Note tone="waking">Stripe has the card. It is shown here in some seconds.</Note>
              )}
              {card === "canceled" && (
                <Note tone="quiet">No card was given. Nothing has changed.</Note>
              )}
              <PaymentMethodFacts method={method.data} />
            </Stack>
          ) : (
            <Skeleton height={120} maw={640} />
          )}
        </Answered>
      </Section>
      <Section title="Payments" lead="Each is a receipt of money that came in.">
        <Listed
          query={payments}
          what="The payments could not be read"
          empty={
            <Empty title="No payment yet">
              What is charged to the card, or comes in by bank transfer, is listed here with the
              invoices that it paid.
            </Empty>
          }
        >
          {(rows) => <PaymentTable payments={rows} />}
        </Listed>
      </Section>
    </>
  );
}
