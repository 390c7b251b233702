import { Group } from "@mantine/core";
import type { Column } from "@/components/DataTable";
import { RowButton } from "@/components/GuardedButton";
import { Moment } from "@/components/Moment";
import { StateMark } from "@/components/StateMark";
import type {
  MoneyDifference,
  Reconciliation,
  StaffAttempt,
  StaffPayment,
  StaffReceivable,
} from "@/lib/api/types";
import { formatMoney } from "@/lib/format/money";
import { utcDay } from "@/lib/format/utc";

const money = (minor: number | null, currency: string): string =>
  minor === null ? "–" : formatMoney(minor, currency || "USD");

const words = (name: string): string => name.replaceAll("_", " ");

/** The columns of what is owed. `onPay` and `onWriteOff` open the form of a row. */
export function receivableColumns(
  onPay: (row: StaffReceivable) => void,
  onWriteOff: (row: StaffReceivable) => void,
): Column<StaffReceivable>[] {
  return [
    { id: "number", header: "Invoice", sortBy: (row) => row.number, cell: (row) => row.number },
    {
      id: "organization",
      header: "Organization",
      sortBy: (row) => row.organization.name,
      cell: (row) => row.organization.name,
    },
    {
      id: "state",
      header: "State",
      width: 110,
      sortBy: (row) => Number(row.overdue),
      cell: (row) => (
        <StateMark tone={row.overdue ? "failed" : "waking"}>
          {row.overdue ? "Overdue" : "Open"}
        </StateMark>
      ),
    },
    {
      id: "due",
      header: "Due",
      width: 120,
      sortBy: (row) => row.due_on ?? "",
      cell: (row) => (row.due_on === null ? "–" : utcDay(new Date(row.due_on))),
    },
    {
      id: "reference",
      header: "Reference",
      cell: (row) => <code>{row.reference}</code>,
    },
    {
      id: "open",
      header: "Open",
      align: "right",
      sortBy: (row) => row.open_minor,
      cell: (row) => (
        <span title={`of ${money(row.amount_minor, row.currency)}`}>
          {money(row.open_minor, row.currency)}
        </span>
      ),
    },
    {
      id: "actions",
      header: "",
      align: "right",
      width: 200,
      cell: (row) => (
        <Group gap={4} justify="flex-end" wrap="nowrap">
          <RowButton
            refused={undefined}
            aria-label={`Enter payment of ${row.number}`}
            onClick={() => {
              onPay(row);
            }}
          >
            Enter payment
          </RowButton>
          <RowButton
            refused={undefined}
            aria-label={`Write off ${row.number}`}
            onClick={() => {
              onWriteOff(row);
            }}
          >
            Write off
          </RowButton>
        </Group>
      ),
    },
  ];
}

/** The columns of what came in. `onRefund` opens the form of a row. */
export function paymentColumns(onRefund: (row: StaffPayment) => void): Column<StaffPayment>[] {
  return [
    {
      id: "received",
      header: "Received",
      sortBy: (row) => row.received_at,
      cell: (row) => <Moment at={row.received_at} />,
    },
    {
      id: "organization",
      header: "Organization",
      sortBy: (row) => row.organization.name,
      cell: (row) => row.organization.name,
    },
    { id: "method", header: "By", cell: (row) => row.method },
    {
      id: "external",
      header: "Bank's or Stripe's id",
      cell: (row) => <code>{row.external_id}</code>,
    },
    {
      id: "amount",
      header: "Amount",
      align: "right",
      sortBy: (row) => row.amount_minor,
      cell: (row) => money(row.amount_minor, row.currency),
    },
    {
      id: "unapplied",
      header: "Credit of it",
      align: "right",
      cell: (row) => (row.unapplied_minor > 0 ? money(row.unapplied_minor, row.currency) : "–"),
    },
    {
      id: "refunded",
      header: "Given back",
      align: "right",
      cell: (row) => (row.refunded_minor > 0 ? money(row.refunded_minor, row.currency) : "–"),
    },
    {
      id: "actions",
      header: "",
      align: "right",
      width: 100,
      cell: (row) => (
        <RowButton
          refused={row.refunded_minor < row.amount_minor ? undefined : "All of it was given back."}
          aria-label={`Refund ${row.id}`}
          onClick={() => {
            onRefund(row);
          }}
        >
          Refund
        </RowButton>
      ),
    },
  ];
}

export const FAILED_ATTEMPTS: Column<StaffAttempt>[] = [
  {
    id: "created",
    header: "When",
    sortBy: (row) => row.created_at,
    cell: (row) => <Moment at={row.created_at} />,
  },
  {
    id: "organization",
    header: "Organization",
    sortBy: (row) => row.organization.name,
    cell: (row) => row.organization.name,
  },
  {
    id: "amount",
    header: "Amount",
    align: "right",
    sortBy: (row) => row.amount_minor,
    cell: (row) => money(row.amount_minor, row.currency),
  },
  {
    id: "origin",
    header: "Made by",
    cell: (row) => (row.origin === "customer" ? "the customer" : "the service"),
  },
  {
    id: "failure",
    header: "Why",
    isSentence: true,
    sortBy: (row) => row.failure,
    cell: (row) =>
      [words(row.failure), row.failure_code && `(${row.failure_code})`, row.failure_message]
        .filter(Boolean)
        .join(" "),
  },
  { id: "intent", header: "At Stripe", cell: (row) => <code>{row.intent_id ?? "–"}</code> },
];

const DIFFERENCES_BY_KIND: Record<MoneyDifference["kind"], string> = {
  payment_unknown: "Stripe has a payment that is not entered here",
  payment_absent: "A payment is entered that Stripe does not have",
  refund_unknown: "Stripe has a refund that is not entered here",
  refund_absent: "A refund is entered that Stripe does not have",
  dispute_unknown: "Stripe has a dispute that is not entered here",
  amount_differs: "Stripe has another amount",
  charged_twice: "An invoice was charged twice",
  ledger_differs: "The ledger and the receivables disagree",
  clearing_differs: "The ledger and Stripe disagree on the money at Stripe",
};

export const DIFFERENCES: Column<MoneyDifference>[] = [
  {
    id: "kind",
    header: "What does not agree",
    isSentence: true,
    sortBy: (row) => row.kind,
    cell: (row) => DIFFERENCES_BY_KIND[row.kind],
  },
  { id: "subject", header: "Of", cell: (row) => <code>{row.subject}</code> },
  {
    id: "organization",
    header: "Organization",
    cell: (row) => <code>{row.organization_id || "–"}</code>,
  },
  {
    id: "ours",
    header: "Here",
    align: "right",
    cell: (row) => money(row.ours_minor, row.currency),
  },
  {
    id: "theirs",
    header: "There",
    align: "right",
    cell: (row) => money(row.theirs_minor, row.currency),
  },
  {
    id: "since",
    header: "Seen since",
    sortBy: (row) => row.created_at,
    cell: (row) => <Moment at={row.created_at} />,
  },
];

export const RECONCILIATIONS: Column<Reconciliation>[] = [
  {
    id: "begun",
    header: "Compared",
    sortBy: (row) => row.created_at,
    cell: (row) => <Moment at={row.created_at} />,
  },
  {
    id: "state",
    header: "State",
    cell: (row) => (
      <StateMark tone={!row.finished_at ? "waking" : row.differences > 0 ? "failed" : "running"}>
        {!row.finished_at ? "Not finished" : row.differences > 0 ? "Differences" : "Agrees"}
      </StateMark>
    ),
  },
  { id: "compared", header: "Items", align: "right", cell: (row) => row.compared },
  { id: "differences", header: "Differences", align: "right", cell: (row) => row.differences },
  {
    id: "reason",
    header: "Why it did not finish",
    isSentence: true,
    cell: (row) => row.reason || "–",
  },
];
