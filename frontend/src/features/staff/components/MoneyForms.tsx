import { Checkbox, Textarea, TextInput } from "@mantine/core";
import { useForm } from "@mantine/form";
import { notifications } from "@mantine/notifications";
import type { ReactElement } from "react";
import { MutationForm } from "@/components/MutationForm";
import { Note } from "@/components/Note";
import type { PaymentInput, StaffPayment, StaffReceivable } from "@/lib/api/types";
import { editMoney, formatMoney } from "@/lib/format/money";
import { serverTime } from "@/lib/serverTime";
import { useEnterPayment, useGrantCredit, useRefund, useWriteOff } from "../api/money";
import { amountOf, dayOf, isOrganization } from "../money";

const AMOUNT = "Enter an amount above 0, and its currency";

/** Enters a payment: of one receivable, or by what a bank statement says. */
export function EnterPayment({
  of,
  onDone,
}: {
  of?: StaffReceivable;
  onDone: () => void;
}): ReactElement {
  const form = useForm({
    initialValues: {
      whose: of?.reference ?? "",
      amount: of ? editMoney(of.open_minor, of.currency) : "",
      currency: of?.currency ?? "",
      bankId: "",
      day: serverTime().toISOString().slice(0, 10),
      note: "",
    },
    validate: {
      whose: (whose) => (whose.trim() ? null : "Enter a reference or an organization's id"),
      amount: (amount, { currency }) => (amountOf(amount, currency) === null ? AMOUNT : null),
      bankId: (id) => (id.trim() ? null : "Enter the bank's id of the payment"),
      day: (day) => (dayOf(day) === null ? "Enter a day like 2026-12-10" : null),
    },
  });
  return (
    <MutationForm
      form={form}
      mutation={useEnterPayment()}
      input={({ whose, amount, currency, bankId, day, note }) => ({
        ...(isOrganization(whose)
          ? { organization_id: whose.trim() }
          : { reference: whose.trim() }),
        amount_minor: amountOf(amount, currency) ?? 0,
        currency: currency as PaymentInput["currency"],
        external_id: bankId.trim(),
        received_at: dayOf(day) ?? "",
        note: note.trim(),
      })}
      onDone={({ amount_minor, currency, organization }) => {
        const amount = formatMoney(amount_minor, currency);
        notifications.show({ message: `${amount} of ${organization.name} is entered` });
        onDone();
      }}
      onCancel={onDone}
      action="Enter payment"
      failure="The payment was not entered"
    >
      <TextInput
        label="Reference"
        description="A transfer's reference, an invoice number, or an organization's id"
        data-autofocus
        autoComplete="off"
        {...form.getInputProps("whose")}
      />
      <Money form={form} />
      <TextInput
        label="The bank's id"
        description="What is entered twice with the same id counts once"
        autoComplete="off"
        {...form.getInputProps("bankId")}
      />
      <TextInput
        label="Received on, UTC"
        placeholder="2026-12-10"
        autoComplete="off"
        {...form.getInputProps("day")}
      />
      <Textarea label="Note" autosize minRows={2} {...form.getInputProps("note")} />
    </MutationForm>
  );
}

/** Grants credit to an organization. */
export function GrantCredit({ onDone }: { onDone: () => void }): ReactElement {
  const form = useForm({
    initialValues: { organization: "", amount: "", currency: "", reason: "", name: "" },
    validate: {
      organization: (id) => (isOrganization(id) ? null : "Enter an id like org_…"),
      amount: (amount, { currency }) => (amountOf(amount, currency) === null ? AMOUNT : null),
      reason: (reason) => (reason.trim() ? null : "Say why; the customer may read it"),
      name: (name) => (name.trim() ? null : "Name what it is for, such as a ticket"),
    },
  });
  return (
    <MutationForm
      form={form}
      mutation={useGrantCredit()}
      input={({ organization, amount, currency, reason, name }) => ({
        organization_id: organization.trim(),
        amount_minor: amountOf(amount, currency) ?? 0,
        currency: currency as PaymentInput["currency"],
        reason: reason.trim(),
        external_id: name.trim(),
      })}
      onDone={({ amount_minor, currency, organization }) => {
        const amount = formatMoney(amount_minor, currency);
        notifications.show({ message: `${amount} of credit is granted to ${organization.name}` });
        onDone();
      }}
      onCancel={onDone}
      action="Grant credit"
      failure="The credit was not granted"
    >
      <TextInput
        label="Organization's id"
        data-autofocus
        autoComplete="off"
        {...form.getInputProps("organization")}
      />
      <Money form={form} />
      <Textarea label="Reason" autosize minRows={2} {...form.getInputProps("reason")} />
      <TextInput
        label="Name"
        description="Such as a ticket: what is granted twice with the same name counts once"
        autoComplete="off"
        {...form.getInputProps("name")}
      />
    </MutationForm>
  );
}

interface MoneyFields {
  form: { getInputProps: (name: "amount" | "currency") => object };
}

function Money({ form }: MoneyFields): ReactElement {
  return (
    <>
      <TextInput
        label="Amount"
        inputMode="decimal"
        autoComplete="off"
        {...form.getInputProps("amount")}
      />
      <TextInput
        label="Currency"
        description="Three letters, such as USD"
        autoComplete="off"
        {...form.getInputProps("currency")}
      />
    </>
  );
}

/** Gives up what is open of an invoice. */
export function WriteOff({
  of,
  onDone,
}: {
  of: StaffReceivable;
  onDone: () => void;
}): ReactElement {
  const form = useForm({
    initialValues: { reason: "" },
    validate: { reason: (reason) => (reason.trim() ? null : "Say why") },
  });
  const amount = formatMoney(of.open_minor, of.currency);
  return (
    <MutationForm
      form={form}
      mutation={useWriteOff()}
      input={({ reason }) => ({ invoice_id: of.invoice_id, reason: reason.trim() })}
      onDone={() => {
        notifications.show({ message: `${of.number} is written off` });
        onDone();
      }}
      onCancel={onDone}
      action="Write it off"
      failure="It was not written off"
    >
      <Note tone="waking">
        {amount} of {of.number}, {of.organization.name}, are given up. Nobody is reminded of them
        any more. A payment that names the invoice takes it back.
      </Note>
      <Textarea
        label="Reason"
        autosize
        minRows={2}
        data-autofocus
        {...form.getInputProps("reason")}
      />
    </MutationForm>
  );
}

/** Gives a payment back, or a part of it. */
export function Refund({ of, onDone }: { of: StaffPayment; onDone: () => void }): ReactElement {
  const { currency } = of;
  const left = of.amount_minor - of.refunded_minor;
  const byCard = of.method === "card";
  const form = useForm({
    initialValues: { amount: editMoney(left, currency), name: "", reason: "", goodwill: false },
    validate: {
      amount: (amount) => {
        const minor = amountOf(amount, currency);
        return minor === null || minor > left
          ? `Enter an amount up to ${formatMoney(left, currency)}`
          : null;
      },
      name: (name) => (name.trim() ? null : "Enter an id"),
      reason: (reason) => (reason.trim() ? null : "Say why"),
    },
  });
  return (
    <MutationForm
      form={form}
      mutation={useRefund()}
      input={({ amount, name, reason, goodwill }) => ({
        payment_id: of.id,
        amount_minor: amountOf(amount, currency) ?? 0,
        external_id: name.trim(),
        reason: reason.trim(),
        is_goodwill: goodwill,
      })}
      onDone={({ made, amount_minor }) => {
        const amount = formatMoney(amount_minor, currency);
        notifications.show({
          message: made ? `The refund of ${amount} is entered` : `Stripe gives ${amount} back`,
        });
        onDone();
      }}
      onCancel={onDone}
      action={byCard ? "Give it back" : "Enter refund"}
      failure="Nothing was given back"
    >
      <TextInput
        label={`Amount, ${currency}`}
        inputMode="decimal"
        data-autofocus
        autoComplete="off"
        {...form.getInputProps("amount")}
      />
      <TextInput
        label={byCard ? "Name" : "The bank's id"}
        description={
          byCard
            ? "Such as a ticket: Stripe gives it back once for the same name"
            : "Of the transfer that gave it back"
        }
        autoComplete="off"
        {...form.getInputProps("name")}
      />
      <Textarea label="Reason" autosize minRows={2} {...form.getInputProps("reason")} />
      <Checkbox
        size="xs"
        label="Goodwill: the invoices that it had paid stay paid"
        {...form.getInputProps("goodwill", { type: "checkbox" })}
      />
    </MutationForm>
  );
}
