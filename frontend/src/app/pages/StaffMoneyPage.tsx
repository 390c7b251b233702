import { Button, Group } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import type { ReactElement } from "react";
import { SidePanel } from "@/components/SidePanel";
import {
  staffDifferencesQuery,
  staffFailedAttemptsQuery,
  staffPaymentsQuery,
  staffReceivablesQuery,
  staffReconciliationsQuery,
} from "@/features/staff/api/money";
import { staffInvoiceMonthsQuery, staffMissingInvoicesQuery } from "@/features/staff/api/staff";
import {
  EnterPayment,
  GrantCredit,
  Refund,
  WriteOff,
} from "@/features/staff/components/MoneyForms";
import {
  DIFFERENCES,
  FAILED_ATTEMPTS,
  paymentColumns,
  receivableColumns,
  RECONCILIATIONS,
} from "@/features/staff/components/moneyTables";
import { INVOICE_MONTHS, MISSING_INVOICES } from "@/features/staff/components/tables";
import type { StaffPayment, StaffReceivable } from "@/lib/api/types";
import { idOf, StaffPart } from "./StaffPart";
import { usePanel } from "./usePanel";

/** The page of staff about money: who owes, what came in, what failed, what does not reconcile. */
export function StaffMoneyPage(): ReactElement {
  const { name, show, close } = usePanel("payment");
  const receivables = useQuery(staffReceivablesQuery);
  const payments = useQuery(staffPaymentsQuery);
  const actions = (
    <Group gap="xs">
      <Button
        onClick={() => {
          show("payment");
        }}
      >
        Enter a payment
      </Button>
      <Button
        variant="default"
        onClick={() => {
          show("credit");
        }}
      >
        Grant credit
      </Button>
    </Group>
  );
  return (
    <>
      <StaffPart
        title="Owed"
        lead="What is open of issued invoices."
        actions={actions}
        query={receivables}
        columns={receivableColumns(
          ({ invoice_id }) => {
            show(`payment-${invoice_id}`);
          },
          ({ invoice_id }) => {
            show(`write-off-${invoice_id}`);
          },
        )}
        rowId={({ invoice_id }) => invoice_id}
      />
      <StaffPart
        title="What does not reconcile"
        lead="Differences between the ledger, the invoices and Stripe that last."
        query={useQuery(staffDifferencesQuery)}
        columns={DIFFERENCES}
        rowId={idOf}
      />
      <StaffPart
        title="Failed charges"
        lead="Charges of cards that failed, the newest ones."
        query={useQuery(staffFailedAttemptsQuery)}
        columns={FAILED_ATTEMPTS}
        rowId={idOf}
      />
      <StaffPart
        title="Payments"
        lead="What came in, the newest first."
        query={payments}
        columns={paymentColumns(({ id }) => {
          show(`refund-${id}`);
        })}
        rowId={idOf}
      />
      <StaffPart
        title="Missing invoices"
        query={useQuery(staffMissingInvoicesQuery)}
        columns={MISSING_INVOICES}
        rowId={idOf}
      />
      <StaffPart
        title="Months to invoice"
        query={useQuery(staffInvoiceMonthsQuery)}
        columns={INVOICE_MONTHS}
        rowId={idOf}
      />
      <StaffPart
        title="Comparisons with Stripe"
        query={useQuery(staffReconciliationsQuery)}
        columns={RECONCILIATIONS}
        rowId={idOf}
      />
      <MoneyPanel
        name={name ?? ""}
        receivables={receivables.data ?? []}
        payments={payments.data ?? []}
        onClose={close}
      />
    </>
  );
}

interface PanelProps {
  name: string;
  receivables: readonly StaffReceivable[];
  payments: readonly StaffPayment[];
  onClose: () => void;
}

/** The side panel that the address names, with the form of a row or of none. */
function MoneyPanel({ name, receivables, payments, onClose }: PanelProps): ReactElement {
  const owed = receivables.find(({ invoice_id }) => name.endsWith(invoice_id));
  const paid = payments.find(({ id }) => name.endsWith(id));
  const panels: [boolean, string, () => ReactElement | undefined][] = [
    [
      name === "payment" || (name.startsWith("payment-") && owed !== undefined),
      "Enter a payment",
      () => <EnterPayment key={name} of={owed} onDone={onClose} />,
    ],
    [name === "credit", "Grant credit", () => <GrantCredit onDone={onClose} />],
    [
      name.startsWith("write-off-") && owed !== undefined,
      "Write an invoice off",
      () => owed && <WriteOff of={owed} onDone={onClose} />,
    ],
    [
      name.startsWith("refund-") && paid !== undefined,
      "Refund",
      () => paid && <Refund of={paid} onDone={onClose} />,
    ],
  ];
  return (
    <>
      {panels.map(([opened, title, form]) => (
        <SidePanel key={title} opened={opened} onClose={onClose} title={title}>
          {opened && form()}
        </SidePanel>
      ))}
    </>
  );
}
