import { Link } from "@tanstack/react-router";
import type { ReactElement } from "react";
import { type Column, DataTable } from "@/components/DataTable";
import { Moment } from "@/components/Moment";
import type { InvoiceSummary } from "@/lib/api/types";
import { formatMoney } from "@/lib/format/money";
import { monthName, utcDay } from "@/lib/format/utc";
import { pdfPath } from "../api/invoices";
import { InvoiceMark } from "./InvoiceMark";

/** The organization's invoices. */
export function InvoiceTable({
  invoices,
}: {
  invoices: readonly InvoiceSummary[] | undefined;
}): ReactElement {
  return (
    <DataTable
      label="Invoices"
      columns={COLUMNS}
      rows={invoices}
      rowId={(invoice) => invoice.id}
      initialSort={[{ id: "month", desc: true }]}
    />
  );
}

const COLUMNS: Column<InvoiceSummary>[] = [
  {
    id: "number",
    header: "Number",
    sortBy: (invoice) => invoice.number ?? "",
    cell: ({ id, number }) => (
      <Link
        to="/invoices/$invoiceId"
        params={{ invoiceId: id }}
        style={{ fontFamily: "var(--mantine-font-family-monospace)" }}
      >
        {number ?? id}
      </Link>
    ),
  },
  {
    id: "kind",
    header: "Kind",
    cell: ({ kind }) => (kind === "credit_note" ? "Credit note" : "Invoice"),
  },
  {
    id: "month",
    header: "Month",
    sortBy: (invoice) => invoice.month,
    cell: (invoice) => monthName(invoice.month),
  },
  {
    id: "state",
    header: "State",
    width: 130,
    sortBy: (invoice) => invoice.state,
    cell: (invoice) => <InvoiceMark state={invoice.state} />,
  },
  {
    id: "issued",
    header: "Issued",
    width: 130,
    sortBy: (invoice) => invoice.issued_at ?? "",
    cell: (invoice) => <Moment at={invoice.issued_at} />,
  },
  {
    id: "due",
    header: "Due",
    width: 120,
    sortBy: (invoice) => invoice.due_on ?? "",
    cell: ({ due_on, open_minor }) =>
      due_on !== null && open_minor > 0 ? utcDay(new Date(due_on)) : "–",
  },
  {
    id: "open",
    header: "To be paid",
    align: "right",
    width: 120,
    sortBy: (invoice) => invoice.open_minor,
    // Without a day by which it is due nobody collects it.
    cell: ({ due_on, open_minor, currency }) =>
      due_on !== null && open_minor > 0 ? formatMoney(open_minor, currency) : "–",
  },
  {
    id: "total",
    header: "Total",
    align: "right",
    width: 140,
    sortBy: (invoice) => invoice.total_minor,
    cell: (invoice) => <strong>{formatMoney(invoice.total_minor, invoice.currency)}</strong>,
  },
  {
    id: "pdf",
    header: "",
    align: "right",
    width: 90,
    cell: ({ id, number, sha256 }) =>
      number !== null &&
      sha256 !== null && (
        <a
          href={pdfPath(id)}
          target="_blank"
          rel="noreferrer"
          aria-label={`PDF of the invoice ${number}`}
        >
          PDF
        </a>
      ),
  },
];
