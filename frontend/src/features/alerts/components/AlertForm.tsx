import { Autocomplete, MultiSelect, Select, TextInput } from "@mantine/core";
import { useForm } from "@mantine/form";
import { notifications } from "@mantine/notifications";
import type { UseMutationResult } from "@tanstack/react-query";
import type { ReactElement } from "react";
import { MutationForm } from "@/components/MutationForm";
import type { Alert, AlertChange, AlertKind } from "@/lib/api/types";
import { useCreateAlert, useUpdateAlert } from "../api/alerts";
import {
  conditionWords,
  durations,
  figureHint,
  isOfGroups,
  KINDS,
  parseFigure,
  writeFigure,
} from "../figures";

interface Props {
  /** The names of the cluster's groups to choose from. */
  groups: readonly string[];
  /** The addresses of the organization's members. */
  members: readonly string[];
  onDone: () => void;
}

interface NewProps extends Props {
  /** The clusters that may be watched, by id. */
  clusters: readonly { value: string; label: string }[];
  clusterId: string;
  /** The consumer group to watch, where the page is about one. */
  group?: string;
  onCluster: (id: string) => void;
}

const FOR_S = 300;

/** The form of a new alert. */
export function NewAlertForm({
  clusters,
  clusterId,
  group,
  onCluster,
  ...props
}: NewProps): ReactElement {
  const create = useCreateAlert();
  return (
    <AlertFields
      {...props}
      initial={{
        name: group === undefined ? "" : `${group} falls behind`,
        kind: "group_lag_seconds",
        group: group ?? "",
        threshold: "1 min",
        for_s: String(FOR_S),
        emails: [],
      }}
      settled={group !== undefined}
      action="Create alert"
      failure="The alert was not created"
      mutation={create}
      input={(change, kind) => ({ ...change, kind, cluster_id: clusterId })}
    >
      {group === undefined && (
        <Select
          label="Cluster"
          data={clusters}
          value={clusterId}
          onChange={(id) => {
            if (id !== null) onCluster(id);
          }}
          allowDeselect={false}
          searchable
        />
      )}
    </AlertFields>
  );
}

/** The form that changes an alert. Its cluster and its figure stay. */
export function EditAlertForm({ alert, ...props }: Props & { alert: Alert }): ReactElement {
  const update = useUpdateAlert(alert);
  return (
    <AlertFields
      {...props}
      initial={{
        name: alert.name,
        kind: alert.kind,
        group: alert.group,
        threshold: writeFigure(alert.kind, alert.threshold),
        for_s: String(alert.for_s),
        emails: alert.emails,
      }}
      settled
      action="Save"
      failure="The alert was not saved"
      mutation={update}
      input={(change) => change}
    />
  );
}

interface Values {
  name: string;
  kind: AlertKind;
  group: string;
  threshold: string;
  for_s: string;
  emails: string[];
}

type Complete = Required<AlertChange>;

interface FieldsProps<Input> extends Props {
  initial: Values;
  /** Whether the figure is fixed, or at least that it is one of groups. */
  settled: boolean;
  action: string;
  failure: string;
  mutation: UseMutationResult<Alert, Error, Input>;
  input: (change: Complete, kind: AlertKind) => Input;
  children?: ReactElement | false;
}

function changeOf(values: Values): Complete {
  const { name, kind, group, threshold, for_s, emails } = values;
  return {
    name: name.trim(),
    group: isOfGroups(kind) ? group.trim() : "",
    threshold: parseFigure(kind, threshold) ?? "0",
    for_s: Number(for_s),
    emails,
  };
}

function AlertFields<Input>(props: FieldsProps<Input>): ReactElement {
  const { groups, members, onDone, initial, settled, action, failure, mutation, input } = props;
  const form = useForm({
    initialValues: initial,
    validate: {
      name: (name) => (name.trim() ? null : "Name the alert"),
      threshold: (text, { kind }) =>
        parseFigure(kind, text) === undefined ? figureHint(kind) : null,
    },
  });
  const { kind, threshold } = form.values;
  const kinds = settled
    ? KINDS.filter((candidate) => candidate.ofGroups === isOfGroups(initial.kind))
    : KINDS;
  const change = changeOf(form.values);
  const figure = parseFigure(kind, threshold);
  return (
    <MutationForm
      form={form}
      mutation={mutation}
      input={(values) => input(changeOf(values), values.kind)}
      onDone={(alert) => {
        notifications.show({ message: `The alert ${alert.name} is set` });
        onDone();
      }}
      onCancel={onDone}
      action={action}
      failure={failure}
    >
      <TextInput
        label="Name"
        description="The subject of its mails"
        data-autofocus
        autoFocus
        autoComplete="off"
        maxLength={100}
        {...form.getInputProps("name")}
      />
      {props.children}
      <Select
        label="Figure"
        description={KINDS.find(({ value }) => value === kind)?.what}
        data={kinds.map(({ value, label }) => ({ value, label }))}
        allowDeselect={false}
        disabled={action === "Save"}
        {...form.getInputProps("kind")}
      />
      {isOfGroups(kind) && (
        <Autocomplete
          label="Consumer group"
          placeholder="The group that is furthest behind"
          data={[...groups]}
          limit={50}
          maxLength={255}
          autoComplete="off"
          spellCheck={false}
          {...form.getInputProps("group")}
        />
      )}
      <TextInput
        label="Fires above"
        description={figureHint(kind)}
        autoComplete="off"
        {...form.getInputProps("threshold")}
      />
      <Select
        label="For"
        description="How long the figure must be above before it fires, and below before it is over"
        data={durations(Number(initial.for_s))}
        allowDeselect={false}
        {...form.getInputProps("for_s")}
      />
      <MultiSelect
        label="Mail to"
        placeholder={form.values.emails.length === 0 ? "Owners and admins" : undefined}
        description={
          figure === undefined
            ? undefined
            : `${conditionWords({ ...change, kind })}. It is checked once a minute.`
        }
        data={[...new Set([...members, ...initial.emails])]}
        searchable
        maxValues={20}
        {...form.getInputProps("emails")}
      />
    </MutationForm>
  );
}
