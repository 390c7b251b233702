import { Stack } from "@mantine/core";
import type { ReactElement } from "react";
import { CopyText } from "@/components/CopyText";
import { type Column, DataTable } from "@/components/DataTable";
import { Moment } from "@/components/Moment";
import { Note, NoteMore } from "@/components/Note";
import { Section } from "@/components/Section";
import type { Collector, Invoice, InvoicePayment } from "@/lib/api/types";
import { formatMoney } from "@/lib/format/money";
import { utcDay } from "@/lib/format/utc";
import { methodName, readableReference } from "../words";
import { PayNow } from "./PayNow";

interface Props {
  invoice: Invoice;
  /** Undefined until it is known. */
  collector: Collector | undefined;
  /** Whether the customer comes back from the page of a bank. */
  returned: boolean;
}

/** What is still to be paid of an invoice, and how. It is empty where nothing is. */
export function ToPay({ invoice, collector, returned }: Props): ReactElement | null {
  const { open_minor, currency, due_on, state, reference } = invoice;
  if (collector === undefined || collector === "none") return null;
  if (state === "paid") {
    return returned ? <Note tone="running">The payment came in. This invoice is paid.</Note> : null;
  }
  if (open_minor <= 0) return null;
  const amount = formatMoney(open_minor, currency);
  const due = due_on === null ? "" : ` by ${utcDay(new Date(due_on))}`;
  const late = state === "overdue";
  return (
    <Note
      tone={late ? "failed" : "waking"}
      action={
        collector === "stripe" && (
          <PayNow invoiceId={invoice.id} amountMinor={open_minor} currency={currency} />
        )
      }
    >
      <strong>
        {amount} {late ? "was to be paid" : "is to be paid"}
        {due}.
      </strong>
      {returned && (
        <NoteMore>
          Your bank was asked. Where the payment was confirmed, this page shows it in some seconds.
        </NoteMore>
      )}
      {collector === "stripe" && (
        <NoteMore>The card is charged by itself; you can also pay it now.</NoteMore>
      )}
      {collector === "transfer" && (
        <NoteMore>
          Transfer it to the account that the PDF names, with the reference{" "}
          <CopyText value={readableReference(reference)} what="the reference" />.
        </NoteMore>
      )}
    </Note>
  );
}

/** What paid an invoice: a receipt. It is empty where nothing did. */
export function PaidBy({ invoice }: { invoice: Invoice }): ReactElement | null {
  if (invoice.payments.length === 0) return null;
  const columns = columnsOf(invoice.currency);
  return (
    <Stack maw={960} mt="xl">
      <Section title="Paid by">
        <DataTable
          label="Payments of this invoice"
          columns={columns}
          rows={invoice.payments}
          rowId={({ id }) => id}
        />
      </Section>
    </Stack>
  );
}

function columnsOf(currency: string): Column<InvoicePayment>[] {
  return [
    { id: "method", header: "By", cell: ({ method }) => methodName(method) },
    { id: "received", header: "On", cell: ({ received_at }) => <Moment at={received_at} /> },
    { id: "id", header: "Receipt", cell: ({ id }) => <code>{id}</code> },
    {
      id: "amount",
      header: "Amount",
      align: "right",
      cell: ({ amount_minor }) => <strong>{formatMoney(amount_minor, currency)}</strong>,
    },
  ];
}
