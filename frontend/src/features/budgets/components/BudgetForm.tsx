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
import {
  ACTIONS,
  consequences,
  editRate,
  parseRate,
  parseThresholds,
  promiseWords,
} from "../words";

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
      initial={{
        name: "",
        amount: "",
        thresholds: ["50", "80", "100"],
        action: "notify",
        rate: editRate(null),
      }}
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
        rate: editRate(budget.throttle_bytes_per_s),
      }}
      action="Save"
      failure="The budget was not saved"
      mutation={update}
      promisedUntil={budget.action === "suspend" ? budget.covers_all_until : null}
    />
  );
}

interface Values {
  name: string;
  amount: string;
  thresholds: string[];
  action: BudgetAction;
  /** In KiB a second. */
  rate: string;
}

interface FieldsProps extends Props {
  initial: Values;
  action: string;
  failure: string;
  mutation: UseMutationResult<Budget, Error, NewBudget>;
  /** The last month of the promise under which it was set, `YYYY-MM`, if that was another one. */
  promisedUntil?: string | null;
}

function BudgetFields(props: FieldsProps): ReactElement {
  const { currency, spentMinor, initial, action, failure, mutation, promisedUntil, onDone } = props;
  const form = useForm({
    initialValues: { ...initial, understood: false },
    validate: {
      name: (name) => (name.trim() ? null : "Name the budget"),
      amount: (amount) => ((parseMoney(amount, currency) ?? 0) > 0 ? null : "Enter an amount"),
      thresholds: (thresholds) =>
        parseThresholds(thresholds) ? null : "Enter whole percents from 1 to 1000",
      understood: (understood, values) =>
        values.action !== "notify" && !understood ? "Confirm it before saving" : null,
      rate: (rate, values) =>
        values.action !== "throttle" || parseRate(rate)
          ? null
          : "Enter a whole number of KiB a second, 64 or more",
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
        ...(values.action === "throttle" && { throttle_bytes_per_s: parseRate(values.rate) }),
      })}
      onDone={(budget) => {
        notifications.show({ message: `The budget ${budget.name} holds` });
        onDone();
      }}
      onCancel={onDone}
      action={action}
      failure={failure}
    >
      {promisedUntil && <Note tone="waking">{promiseWords(promisedUntil)}</Note>}
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
      {form.values.action === "throttle" && (
        <TextInput
          label="Rate of each cluster, KiB a second, of produce and fetch together"
          inputMode="numeric"
          {...form.getInputProps("rate")}
        />
      )}
      {form.values.action !== "notify" && (
        <>
          <Consequences
            action={form.values.action}
            amount={amount}
            currency={currency}
            spentMinor={spentMinor}
          />
          <Checkbox
            size="xs"
            label={UNDERSTOOD[form.values.action]}
            {...form.getInputProps("understood", { type: "checkbox" })}
          />
        </>
      )}
    </MutationForm>
  );
}

const UNDERSTOOD = {
  suspend: "I understand that producers and consumers will be refused, and storage goes on costing",
  throttle: "I understand that producers and consumers will be slowed down, and all is billed",
};
const AT_ONCE = {
  suspend: "produce and fetch are suspended at once.",
  throttle: "traffic is slowed down at once.",
};

interface ConsequencesProps {
  action: Exclude<BudgetAction, "notify">;
  amount: number | null;
  currency: string;
  spentMinor: number | undefined;
}

function Consequences(props: ConsequencesProps): ReactElement {
  const { action, amount, currency, spentMinor } = props;
  const atOnce = amount !== null && spentMinor !== undefined && spentMinor >= amount;
  return (
    <Note tone={atOnce ? "failed" : "waking"}>
      <strong>
        {atOnce
          ? `${formatMoney(spentMinor, currency)} are spent already, and stay billed: ` +
            AT_ONCE[action]
          : "What happens at the amount"}
      </strong>
      {consequences(action, amount ?? 0, currency).map((line) => (
        <NoteMore key={line}>{line}</NoteMore>
      ))}
    </Note>
  );
}
