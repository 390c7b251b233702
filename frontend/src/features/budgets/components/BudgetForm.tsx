import { Checkbox, Radio, Stack, TagsInput, TextInput } from "@mantine/core";
import { useForm } from "@mantine/form";
import { notifications } from "@mantine/notifications";
import type { UseMutationResult } from "@tanstack/react-query";
import type { ReactElement } from "react";
import { MutationForm } from "@/components/MutationForm";
import { Note, NoteMore } from "@/components/Note";
import type { Budget, BudgetAction, NewBudget } from "@/lib/api/types";
import { editMoney, formatMoney, parseMoney } from "@/lib/format/money";
import { useCreateBudget, useUpdateBudget } from "../api/budgets";
import { ACTIONS, consequences, parseThresholds } from "../words";

interface Props {
  currency: string;
  /** The cost of the month so far in minor units. A suspending budget below it acts at once. */
  spentMinor: number | undefined;
  onDone: () => void;
}

/** The form of a new budget. */
export function NewBudgetForm(props: Props): ReactElement {
  const create = useCreateBudget();
  return (
    <BudgetFields
      {...props}
      initial={{ name: "", amount: "", thresholds: ["50", "80", "100"], action: "notify" }}
      action="Create budget"
      failure="The budget was not created"
      mutation={create}
    />
  );
}

/** The form that changes a budget. */
export function EditBudgetForm({ budget, ...props }: Props & { budget: Budget }): ReactElement {
  const update = useUpdateBudget(budget);
  return (
    <BudgetFields
      {...props}
      initial={{
        name: budget.name,
        amount: editMoney(budget.amount_minor, props.currency),
        thresholds: budget.thresholds.map(String),
        action: budget.action,
      }}
      action="Save"
      failure="The budget was not saved"
      mutation={update}
    />
  );
}

interface Values {
  name: string;
  amount: string;
  thresholds: string[];
  action: BudgetAction;
}

interface FieldsProps extends Props {
  initial: Values;
  action: string;
  failure: string;
  mutation: UseMutationResult<Budget, Error, NewBudget>;
}

function BudgetFields(props: FieldsProps): ReactElement {
  const { currency, spentMinor, initial, action, failure, mutation, onDone } = props;
  const form = useForm({
    initialValues: { ...initial, understood: false },
    validate: {
      name: (name) => (name.trim() ? null : "Name the budget"),
      amount: (amount) => ((parseMoney(amount, currency) ?? 0) > 0 ? null : "Enter an amount"),
      thresholds: (thresholds) =>
        parseThresholds(thresholds) ? null : "Enter whole percents from 1 to 1000",
      understood: (understood, values) =>
        values.action === "suspend" && !understood ? "Confirm it before saving" : null,
    },
  });
  const amount = parseMoney(form.values.amount, currency);
  return (
    <MutationForm
      form={form}
      mutation={mutation}
      input={(values) => ({
        name: values.name.trim(),
        amount_minor: parseMoney(values.amount, currency) ?? 0,
        thresholds: parseThresholds(values.thresholds) ?? [],
        action: values.action,
      })}
      onDone={(budget) => {
        notifications.show({ message: `The budget ${budget.name} holds` });
        onDone();
      }}
      onCancel={onDone}
      action={action}
      failure={failure}
    >
      <TextInput
        label="Name"
        description="It is shown in mails, and in the error that refused producers get"
        data-autofocus
        autoComplete="off"
        {...form.getInputProps("name")}
      />
      <TextInput
        label={`Amount a month, ${currency}`}
        inputMode="decimal"
        autoComplete="off"
        {...form.getInputProps("amount")}
      />
      <TagsInput
        label="Mail at these percents of it"
        description="Enter a number and press Enter"
        {...form.getInputProps("thresholds")}
      />
      <Radio.Group label="What it does" {...form.getInputProps("action")}>
        <Stack gap={8} mt={6}>
          {ACTIONS.map(({ value, label, description }) => (
            <Radio key={value} value={value} label={label} description={description} size="xs" />
          ))}
        </Stack>
      </Radio.Group>
      {form.values.action === "suspend" && (
        <>
          <Consequences amount={amount} currency={currency} spentMinor={spentMinor} />
          <Checkbox
            size="xs"
            label="I understand that producers will be refused"
            {...form.getInputProps("understood", { type: "checkbox" })}
          />
        </>
      )}
    </MutationForm>
  );
}

interface ConsequencesProps {
  amount: number | null;
  currency: string;
  spentMinor: number | undefined;
}

function Consequences({ amount, currency, spentMinor }: ConsequencesProps): ReactElement {
  const atOnce = amount !== null && spentMinor !== undefined && spentMinor >= amount;
  return (
    <Note tone={atOnce ? "failed" : "waking"}>
      <strong>
        {atOnce
          ? `${formatMoney(spentMinor, currency)} are spent already: produce is suspended at once.`
          : "What happens at the amount"}
      </strong>
      {consequences(amount ?? 0, currency).map((line) => (
        <NoteMore key={line}>{line}</NoteMore>
      ))}
    </Note>
  );
}
