import { Skeleton } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import type { ReactElement } from "react";
import { ErrorPanel } from "@/components/ErrorPanel";
import { Note } from "@/components/Note";
import { PageHead } from "@/components/PageHead";
import { billingDetailsQuery } from "@/features/billingdetails/api/billingDetails";
import { BillingDetailsForm } from "@/features/billingdetails/components/BillingDetailsForm";
import { sessionQuery } from "@/lib/api/session";
import { useRefusal } from "@/lib/permissions";

/** The name and address of the next invoice. */
export function BillingDetailsPage(): ReactElement {
  const refused = useRefusal("billing");
  return (
    <>
      <PageHead
        title="Billing details"
        lead="The address of invoices, from the next one on. Issued invoices never change."
      />
      <div style={{ maxWidth: 560 }}>
        {refused ? <Note tone="quiet">{refused}</Note> : <Details />}
      </div>
    </>
  );
}

function Details(): ReactElement {
  const { data, error, refetch } = useQuery(billingDetailsQuery);
  const { data: session } = useQuery(sessionQuery);
  if (data) {
    return <BillingDetailsForm details={data} organization={session?.organization?.name ?? ""} />;
  }
  if (error) {
    return (
      <ErrorPanel
        error={error}
        what="The billing details could not be read"
        onRetry={() => void refetch()}
      />
    );
  }
  return <Skeleton height={340} />;
}
