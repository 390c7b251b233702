import { useQuery } from "@tanstack/react-query";
import type { ReactElement } from "react";
import { ErrorPanel } from "@/components/ErrorPanel";
import { PageHead } from "@/components/PageHead";
import { Section } from "@/components/Section";
import { pricesQuery } from "@/features/costs/api/costs";
import { PriceTable } from "@/features/costs/components/PriceTable";

/** The prices of all meters. */
export function PricesPage(): ReactElement {
  const { data, error, refetch } = useQuery(pricesQuery);
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
            "A GiB is 2^30 bytes, a month is a month in UTC. Free quantities are for the whole " +
            "organization. Each line of an invoice is rounded once, to the cent."
          }
        >
          <PriceTable prices={data} />
        </Section>
      )}
    </>
  );
}
