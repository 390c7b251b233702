import { Autocomplete, Radio, Select, Stack, Switch, TextInput } from "@mantine/core";
import { useForm, type UseFormReturnType } from "@mantine/form";
import { notifications } from "@mantine/notifications";
import { useQuery } from "@tanstack/react-query";
import type { ReactElement } from "react";
import { ErrorPanel } from "@/components/ErrorPanel";
import { MutationForm } from "@/components/MutationForm";
import type { Acl, AclDraft, AclTemplate } from "@/lib/api/types";
import { aclTemplatesQuery, type NewAcls, useCreateAcls } from "../api/acls";
import {
  aclWords,
  type Choice,
  CHOICES,
  OPERATIONS,
  patternOf,
  templateAcls,
  type TemplateInput,
  templateRequest,
} from "../templates";
import classes from "./NewAclForm.module.css";

interface Values extends TemplateInput {
  choice: Choice;
  resourceType: Acl["resource_type"];
  operation: Acl["operation"];
  permission: Acl["permission"];
}

interface Props {
  clusterId: string;
  /** The names of credentials by principal. */
  names: ReadonlyMap<string, string>;
  topics: string[];
  onDone: () => void;
}

const INITIAL: Values = {
  choice: "producer",
  principal: "",
  topic: "",
  group: "",
  transactionalId: "",
  prefixed: false,
  resourceType: "TOPIC",
  operation: "READ",
  permission: "ALLOW",
};

/** Returns the rule that was chosen by hand. */
function customAcl(values: Values): AclDraft {
  const cluster = values.resourceType === "CLUSTER";
  const name = cluster ? "kafka-cluster" : values.topic.trim() || "*";
  return {
    principal: values.principal,
    resource_type: values.resourceType,
    resource_name: name,
    pattern_type: cluster ? "LITERAL" : patternOf(name, values.prefixed),
    operation: values.operation,
    permission: values.permission,
    host: "*",
  };
}

function inputOf(values: Values): NewAcls {
  if (values.choice === "custom") return { items: [customAcl(values)] };
  return { template: templateRequest(values.choice, values) };
}

/** Returns the rules that the form will add, for the preview. */
function previewOf(values: Values, templates: AclTemplate[] | undefined): AclDraft[] {
  if (values.choice === "custom") return [customAcl(values)];
  const template = templates?.find((candidate) => candidate.template === values.choice);
  return template ? templateAcls(template, templateRequest(values.choice, values)) : [];
}

/** The form that adds the rules of a template, or one by hand, with a preview of them. */
export function NewAclForm({ clusterId, names, topics, onDone }: Props): ReactElement {
  const create = useCreateAcls(clusterId);
  const templates = useQuery(aclTemplatesQuery);
  const form = useForm<Values>({
    initialValues: INITIAL,
    validate: { principal: (principal) => (principal ? null : "Choose a credential") },
  });
  const acls = previewOf(form.values, templates.data);
  const { choice, resourceType } = form.values;
  return (
    <MutationForm
      form={form}
      mutation={create}
      input={inputOf}
      onDone={() => {
        notifications.show({
          message: acls.length === 1 ? "One rule added" : "The rules are added",
        });
        onDone();
      }}
      onCancel={onDone}
      action={`Add ${acls.length === 1 ? "the rule" : `${String(acls.length)} rules`}`}
      failure="No rule was added"
      disabled={acls.length === 0}
    >
      <Radio.Group label="What for" {...form.getInputProps("choice")}>
        <Stack gap={8} mt={6}>
          {CHOICES.map(({ value, label, grants }) => (
            <Radio key={value} value={value} label={label} description={grants} size="xs" />
          ))}
        </Stack>
      </Radio.Group>
      <Select
        label="Credential"
        placeholder="Choose one"
        searchable
        data={principalsOf(names)}
        {...form.getInputProps("principal")}
      />
      {choice === "custom" && <CustomFields form={form} />}
      {!(choice === "custom" && resourceType === "CLUSTER") && (
        <Autocomplete
          label={nameLabel(form.values)}
          description="Empty for all"
          data={resourceType === "TOPIC" || choice !== "custom" ? topics : []}
          {...form.getInputProps("topic")}
        />
      )}
      {(choice === "consumer" || choice === "streams") && (
        <TextInput
          label={choice === "streams" ? "Application id" : "Group"}
          description="Empty for all"
          {...form.getInputProps("group")}
        />
      )}
      {(choice === "producer" || choice === "streams") && (
        <TextInput
          label="Transactional id"
          description="Empty without transactions of its own"
          {...form.getInputProps("transactionalId")}
        />
      )}
      <Switch
        size="xs"
        label="Also all names that begin with it"
        {...form.getInputProps("prefixed", { type: "checkbox" })}
      />
      {templates.error && (
        <ErrorPanel
          error={templates.error}
          what="The templates could not be read"
          onRetry={() => void templates.refetch()}
        />
      )}
      <ul className={classes.preview} aria-label="Rules that will be added">
        {acls.map((acl) => (
          <li key={aclWords(acl)}>{aclWords(acl)}</li>
        ))}
      </ul>
    </MutationForm>
  );
}

function principalsOf(names: Props["names"]): { value: string; label: string }[] {
  const known = [...names].map(([value, name]) => ({ value, label: `${name}, ${value}` }));
  return [...known, { value: "User:*", label: "All credentials, User:*" }];
}

function nameLabel({ choice, resourceType }: Values): string {
  if (choice !== "custom" || resourceType === "TOPIC") return "Topic";
  return resourceType === "GROUP" ? "Group" : "Transactional id";
}

function CustomFields({ form }: { form: UseFormReturnType<Values> }): ReactElement {
  return (
    <>
      <Select
        label="Resource"
        allowDeselect={false}
        data={[
          { value: "TOPIC", label: "Topic" },
          { value: "GROUP", label: "Group" },
          { value: "CLUSTER", label: "Cluster" },
          { value: "TRANSACTIONAL_ID", label: "Transactional id" },
        ]}
        {...form.getInputProps("resourceType")}
        onChange={(picked) => {
          form.setValues({
            resourceType: (picked ?? "TOPIC") as Acl["resource_type"],
            operation: "DESCRIBE",
          });
        }}
      />
      <Select
        label="Operation"
        allowDeselect={false}
        data={[...(OPERATIONS[form.values.resourceType] ?? [])]}
        {...form.getInputProps("operation")}
      />
      <Select
        label="Permission"
        allowDeselect={false}
        data={[
          { value: "ALLOW", label: "Allow" },
          { value: "DENY", label: "Deny (stronger than any allow)" },
        ]}
        {...form.getInputProps("permission")}
      />
    </>
  );
}
