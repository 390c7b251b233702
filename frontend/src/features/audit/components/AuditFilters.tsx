import { Button, Group, Select, TextInput } from "@mantine/core";
import type { ReactElement } from "react";
import { type AuditFilter, type Since, SINCES } from "../filter";

interface Props {
  filter: AuditFilter;
  onChange: (filter: AuditFilter) => void;
}

/** The filters of the log. A field takes effect when it is left, or with Enter. */
export function AuditFilters({ filter, onChange }: Props): ReactElement {
  const chosen = Object.values(filter).some(Boolean);
  return (
    <Group gap="xs" mb="sm" align="flex-end" role="search" aria-label="Filter the audit log">
      <Select
        size="xs"
        w={{ base: "calc(50% - 5px)", xs: 150 }}
        label="Time"
        data={[{ value: "", label: "Any time" }, ...SINCES]}
        allowDeselect={false}
        value={filter.since ?? ""}
        onChange={(since) => {
          onChange({ ...filter, since: (since || undefined) as Since | undefined });
        }}
      />
      <Field
        label="Action"
        placeholder="topic.create"
        value={filter.action}
        onChange={(action) => {
          onChange({ ...filter, action });
        }}
      />
      <Field
        label="By"
        placeholder="id of a person or key"
        value={filter.actor}
        onChange={(actor) => {
          onChange({ ...filter, actor });
        }}
      />
      <Field
        label="Kind of target"
        placeholder="topic"
        value={filter.type}
        onChange={(type) => {
          onChange({ ...filter, type });
        }}
      />
      <Field
        label="Target"
        placeholder="id, or cluster/name"
        value={filter.target}
        onChange={(target) => {
          onChange({ ...filter, target });
        }}
      />
      {chosen && (
        <Button
          variant="subtle"
          onClick={() => {
            onChange({});
          }}
        >
          Show all
        </Button>
      )}
    </Group>
  );
}

interface FieldProps {
  label: string;
  placeholder: string;
  value: string | undefined;
  onChange: (value: string | undefined) => void;
}

function Field({ label, placeholder, value, onChange }: FieldProps): ReactElement {
  const take = (typed: string): void => {
    const entered = typed.trim() || undefined;
    if (entered !== value) onChange(entered);
  };
  return (
    <TextInput
      // A new value in the address replaces the typed text.
      key={value ?? ""}
      size="xs"
      w={{ base: "calc(50% - 5px)", xs: 160 }}
      label={label}
      placeholder={placeholder}
      defaultValue={value ?? ""}
      autoComplete="off"
      spellCheck={false}
      onBlur={(event) => {
        take(event.currentTarget.value);
      }}
      onKeyDown={(event) => {
        if (event.key === "Enter") take(event.currentTarget.value);
      }}
    />
  );
}
