import { Box, Button, Skeleton } from "@mantine/core";
import { IconDownload, IconFileTypePdf } from "@tabler/icons-react";
import { useQuery } from "@tanstack/react-query";
import { useParams, useSearch } from "@tanstack/react-router";
import type { ReactElement } from "react";
import { ErrorPanel } from "@/components/ErrorPanel";
import { PageHead } from "@/components/PageHead";
import { evidencePath, invoiceQuery, pdfPath } from "@/features/invoices/api/invoices";
import { InvoiceDocument } from "@/features/invoices/components/InvoiceDocument";
import { InvoiceNotes } from "@/features/invoices/components/InvoiceNotes";
import { accountQuery } from "@/features/payments/api/payments";
import { PaidBy, ToPay } from "@/features/payments/components/InvoicePayment";
import type { Invoice } from "@/lib/api/types";
import { monthName } from "@/lib/format/utc";

/** One invoice: what is to be paid of it, its PDF, and the evidence that recomputes it. */
export function InvoicePage(): ReactElement {
  const { invoiceId } = useParams({ from: "/frame/invoices/$invoiceId" });
  const { payment } = useSearch({ from: "/frame/invoices/$invoiceId" });
  const { data: invoice, error, refetch } = useQuery(invoiceQuery(invoiceId));
  const { data: account } = useQuery(accountQuery);
  if (error && !invoice) {
    return (
      <ErrorPanel
        error={error}
        what="The invoice could not be read"
        onRetry={() => void refetch()}
      />
    );
  }
  return (
    <>
      <PageHead
        title={invoice ? monthName(invoice.month) : <Skeleton height={20} width={200} mt={4} />}
        lead="Every line can be recomputed to the cent from the evidence."
        actions={invoice && invoice.number !== null && <Documents invoice={invoice} />}
      />
      {invoice ? (
        <>
          <InvoiceNotes invoice={invoice} />
          <Box maw={960} mb="md">
            <ToPay
              invoice={invoice}
              collector={account?.collector}
              returned={payment === "returned"}
            />
          </Box>
          <InvoiceDocument invoice={invoice} />
          <PaidBy invoice={invoice} />
        </>
      ) : (
        <Skeleton height={420} maw={960} />
      )}
    </>
  );
}

function Documents({ invoice }: { invoice: Invoice }): ReactElement {
  const { id, sha256 } = invoice;
  return (
    <>
      <Button
        component="a"
        href={evidencePath(id)}
        download
        variant="default"
        leftSection={<IconDownload size={14} />}
      >
        Evidence
      </Button>
      {sha256 === null ? (
        <Button loading>Open the PDF</Button>
      ) : (
        <Button
          component="a"
          href={pdfPath(id)}
          target="_blank"
          rel="noreferrer"
          leftSection={<IconFileTypePdf size={14} />}
        >
          Open the PDF
        </Button>
      )}
    </>
  );
}
