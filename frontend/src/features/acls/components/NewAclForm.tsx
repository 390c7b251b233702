import { Autocomplete, Button, Group, Radio, Select, Stack, Switch } from "@mantine/core";
import { useForm, type UseFormReturnType } from "@mantine/form";
import { notifications } from "@mantine/notifications";
import type { ReactElement } from "react";
import { ErrorPanel } from "@/components/ErrorPanel";
import type { Acl } from "@/lib/api/types";
import { useCreateAcls } from "../api/acls";
import { aclWords, OPERATIONS, type Template, TEMPLATES, templateAcls } from "../templates";
import classes from "./NewAclForm.module.css";

interface Values {
  template: Template;
  principal: string;
  topic: string;
  group: string;
  prefixed: boolean;
  resourceType: Acl["resource_type"];
  operation: Acl["operation"];
  permission: Acl["permission"];
}

interface Props {
  clusterId: string;
  /** What credentials are called, by their principal. */
  names: ReadonlyMap<string, string>;
  topics: string[];
  onDone: () => void;
}

/** The rules for what was chosen. */
export function aclsOf(values: Values): Acl[] {
  const { template, principal, topic, group, prefixed } = values;
  if (template !== "custom") return templateAcls(template, { principal, topic, group, prefixed });
  const cluster = values.resourceType === "CLUSTER";
  const name = cluster ? "kafka-cluster" : topic || "*";
  return [
    {
      principal,
      resource_type: values.resourceType,
      resource_name: name,
      pattern_type: prefixed && !cluster && name !== "*" ? "PREFIXED" : "LITERAL",
      operation: values.operation,
      permission: values.permission,
      host: "*",
    },
  ];
}

/** Adds rules from a template, or one by hand; what will be added stands below. */
export function NewAclForm({ clusterId, names, topics, onDone }: Props): ReactElement {
  const create = useCreateAcls(clusterId);
  const form = useForm<Values>({
    initialValues: {
      template: "produce",
      principal: "",
      topic: "",
      group: "",
      prefixed: false,
      resourceType: "TOPIC",
      operation: "READ",
      permission: "ALLOW",
    },
    validate: { principal: (principal) => (principal ? null : "Choose a credential") },
  });
  const acls = aclsOf(form.values);
  const submit = form.onSubmit(() => {
    const onSuccess = (): void => {
      notifications.show({ message: acls.length === 1 ? "One rule added" : "The rules are added" });
      onDone();
    };
    create.mutate(acls, { onSuccess });
  });
  const { template } = form.values;
  return (
    <form onSubmit={submit}>
      <Stack gap="md">
        <Radio.Group label="What for" {...form.getInputProps("template")}>
          <Stack gap={8} mt={6}>
            {TEMPLATES.map(({ value, label, grants }) => (
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
        {template === "custom" && <CustomFields form={form} />}
        {!(template === "custom" && form.values.resourceType === "CLUSTER") && (
          <Autocomplete
            label={nameLabel(form.values)}
            description="Empty for all"
            data={form.values.resourceType === "TOPIC" || template !== "custom" ? topics : []}
            {...form.getInputProps("topic")}
          />
        )}
        {(template === "consume" || template === "streams") && (
          <Autocomplete
            label={template === "streams" ? "Application id" : "Group"}
            description="Empty for all"
            {...form.getInputProps("group")}
          />
        )}
        <Switch
          size="xs"
          label="Also all names that begin so"
          {...form.getInputProps("prefixed", { type: "checkbox" })}
        />
        <ul className={classes.preview} aria-label="Rules that will be added">
          {acls.map((acl) => (
            <li key={aclWords(acl)}>{aclWords(acl)}</li>
          ))}
        </ul>
        {create.error && <ErrorPanel error={create.error} what="No rule was added" />}
        <Group justify="flex-end" gap="xs">
          <Button variant="default" onClick={onDone}>
            Cancel
          </Button>
          <Button type="submit" loading={create.isPending}>
            Add {acls.length === 1 ? "the rule" : `${String(acls.length)} rules`}
          </Button>
        </Group>
      </Stack>
    </form>
  );
}

function principalsOf(names: Props["names"]): { value: string; label: string }[] {
  const known = [...names].map(([value, name]) => ({ value, label: `${name}, ${value}` }));
  return [...known, { value: "User:*", label: "All credentials, User:*" }];
}

function nameLabel({ template, resourceType }: Values): string {
  if (template !== "custom" || resourceType === "TOPIC") return "Topic";
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
