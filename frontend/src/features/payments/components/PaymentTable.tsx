import { Link } from "@tanstack/react-router";
import type { ReactElement } from "react";
import { type Column, DataTable } from "@/components/DataTable";
import { Moment } from "@/components/Moment";
import type { Payment } from "@/lib/api/types";
import { formatMoney } from "@/lib/format/money";
import { methodName } from "../words";

/** The money that came in, with the invoices that each payment paid. */
export function PaymentTable({
  payments,
}: {
  payments: readonly Payment[] | undefined;
}): ReactElement {
  return (
    <DataTable
      label="Payments"
      columns={COLUMNS}
      rows={payments}
      rowId={(payment) => payment.id}
      initialSort={[{ id: "received", desc: true }]}
    />
  );
}

const COLUMNS: Column<Payment>[] = [
  {
    id: "received",
    header: "Received",
    width: 150,
    sortBy: (payment) => payment.received_at,
    cell: (payment) => <Moment at={payment.received_at} />,
  },
  { id: "method", header: "By", width: 130, cell: (payment) => methodName(payment.method) },
  {
    id: "invoices",
    header: "For",
    cell: ({ invoices, currency }) => (
      <>
        {invoices.length === 0 && "–"}
        {invoices.map(({ id, number, amount_minor }) => (
          <div key={id}>
            <Link to="/invoices/$invoiceId" params={{ invoiceId: id }}>
              {number}
            </Link>
            {`, ${formatMoney(amount_minor, currency)}`}
          </div>
        ))}
      </>
    ),
  },
  {
    id: "credit",
    header: "Kept as credit",
    align: "right",
    width: 130,
    cell: ({ credit_minor, currency }) =>
      credit_minor > 0 ? formatMoney(credit_minor, currency) : "–",
  },
  {
    id: "refunded",
    header: "Given back",
    align: "right",
    width: 120,
    cell: ({ refunded_minor, currency }) =>
      refunded_minor > 0 ? formatMoney(refunded_minor, currency) : "–",
  },
  {
    id: "amount",
    header: "Amount",
    align: "right",
    width: 130,
    sortBy: (payment) => payment.amount_minor,
    cell: ({ amount_minor, currency }) => <strong>{formatMoney(amount_minor, currency)}</strong>,
  },
  { id: "id", header: "Receipt", width: 220, cell: (payment) => <code>{payment.id}</code> },
];
