import { useQuery } from "@tanstack/react-query";
import type { ReactElement } from "react";
import { ErrorPanel } from "@/components/ErrorPanel";
import { PageHead } from "@/components/PageHead";
import { Section } from "@/components/Section";
import { pricesQuery } from "@/features/costs/api/costs";
import { PriceTable } from "@/features/costs/components/PriceTable";
import { paymentMethodQuery } from "@/features/payments/api/payments";
import type { PaymentMethod } from "@/lib/api/types";

/** The prices of all meters. */
export function PricesPage(): ReactElement {
  const { data, error, refetch } = useQuery(pricesQuery);
  const { data: method } = useQuery(paymentMethodQuery);
  return (
    <>
      <PageHead
        title="Prices"
        lead="There is no base fee, and a sleeping cluster's compute costs nothing."
      />
      {error && !data ? (
        <ErrorPanel
          error={error}
          what="The prices could not be read"
          onRetry={() => void refetch()}
        />
      ) : (
        <Section
          title="Now"
          lead={
            "A GiB is 2^30 bytes, a month is a month in UTC. A partition-month is one partition " +
            "for a whole month: 720 partition-hours in a month of 30 days. " +
            freeText(method) +
            " An invoice rounds the sum of each price once, to the cent."
          }
        >
          <PriceTable prices={data} />
        </Section>
      )}
    </>
  );
}

/** What the free quantities are: for a card each month, and without one a trial, once. */
function freeText(method: PaymentMethod | undefined): string {
  if (method?.collector !== "stripe") return "Free quantities are for the whole organization.";
  if (method.card) {
    return "Free quantities are for a card: all organizations that it pays for share them.";
  }
  return (
    "Without a card the organization has the free quantities once, as its trial: when one of " +
    "them is used up, its clusters refuse to take records and to give them out. What was used so " +
    "stays free; with a card they are free each month."
  );
}
