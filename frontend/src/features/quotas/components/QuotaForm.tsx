import { NumberInput, Radio, Select, Stack, TextInput } from "@mantine/core";
import { useForm, type UseFormReturnType } from "@mantine/form";
import { notifications } from "@mantine/notifications";
import type { ReactElement } from "react";
import { MutationForm } from "@/components/MutationForm";
import type { ClientQuota } from "@/lib/api/types";
import { useSetQuota } from "../api/quotas";
import {
  entityWords,
  kindOf,
  KINDS,
  limitsAnything,
  type Names,
  NOTHING,
  quotaOf,
  type Typed,
} from "../entities";
import { exactRate, parseRate, writeRate } from "../rates";

interface Props {
  clusterId: string;
  /** The quotas to change; undefined for new ones. */
  quota?: ClientQuota;
  names: Names;
  refused?: string;
  onDone: () => void;
}

const EVERY_OTHER = "Empty: every other one, each with these quotas";

function typedOf(quota: ClientQuota): Typed {
  return {
    kind: kindOf(quota),
    user: quota.user ?? "",
    client: quota.client_id ?? "",
    ip: quota.ip ?? "",
    produce: writeRate(quota.produce_bytes_per_second),
    fetch: writeRate(quota.fetch_bytes_per_second),
    request: quota.request_percentage ?? "",
    connections: quota.connections ?? "",
    attempts: quota.connections_per_second ?? "",
  };
}

function rateComplaint(text: string): string | null {
  return parseRate(text) === undefined ? "Bytes per second, such as 10 MiB" : null;
}

/** The form of an entity's quotas. An empty field means no limit. */
export function QuotaForm({ clusterId, quota, names, refused, onDone }: Props): ReactElement {
  const set = useSetQuota(clusterId);
  const form = useForm<Typed>({
    initialValues: quota ? typedOf(quota) : NOTHING,
    validate: { produce: rateComplaint, fetch: rateComplaint },
  });
  const { kind } = form.values;
  return (
    <MutationForm
      form={form}
      mutation={set}
      input={quotaOf}
      onDone={(saved) => {
        notifications.show({ message: `Quotas are set for ${entityWords(saved, names)}` });
        onDone();
      }}
      onCancel={onDone}
      action={quota ? "Save" : "Set quotas"}
      failure="The quotas were not set"
      refused={refused}
      disabled={!limitsAnything(quotaOf(form.values))}
    >
      {!quota && <EntityFields form={form} names={names} />}
      {kind === "ip" ? (
        <NumberInput
          placeholder="Not limited"
          label="New connections per second"
          description="Further ones wait"
          min={0.01}
          max={1_000_000}
          {...form.getInputProps("attempts")}
        />
      ) : (
        <Stack gap="md">
          <RateInput form={form} field="produce" label="Produce, bytes per second" />
          <RateInput form={form} field="fetch" label="Fetch, bytes per second" />
          <NumberInput
            placeholder="Not limited"
            label="Request time, %"
            description="Of one thread: 200 is two threads"
            min={0.01}
            max={1_000_000}
            {...form.getInputProps("request")}
          />
          {kind === "user" && (
            <NumberInput
              placeholder="Not limited"
              label="Connections at once"
              description="To each broker; further ones are closed"
              min={1}
              max={1_000_000}
              allowDecimal={false}
              {...form.getInputProps("connections")}
            />
          )}
        </Stack>
      )}
    </MutationForm>
  );
}

interface FieldsProps {
  form: UseFormReturnType<Typed>;
}

function EntityFields({ form, names }: FieldsProps & { names: Names }): ReactElement {
  const { kind } = form.values;
  const credentials = [...names].map(([value, name]) => ({ value, label: `${name}, ${value}` }));
  return (
    <>
      <Radio.Group label="Applies to" {...form.getInputProps("kind")}>
        <Stack gap={8} mt={6}>
          {KINDS.map(({ value, label, what }) => (
            <Radio key={value} value={value} label={label} description={what} size="xs" />
          ))}
        </Stack>
      </Radio.Group>
      {(kind === "user" || kind === "both") && (
        <Select
          label="Credential"
          searchable
          allowDeselect={false}
          data={[{ value: "", label: "Every other credential, each by itself" }, ...credentials]}
          {...form.getInputProps("user")}
        />
      )}
      {(kind === "client" || kind === "both") && (
        <TextInput
          label="Client id"
          description={EVERY_OTHER}
          autoComplete="off"
          spellCheck={false}
          maxLength={255}
          {...form.getInputProps("client")}
          error={form.errors.client_id}
        />
      )}
      {kind === "ip" && (
        <TextInput
          label="IP address"
          description={EVERY_OTHER}
          autoComplete="off"
          spellCheck={false}
          maxLength={64}
          {...form.getInputProps("ip")}
        />
      )}
    </>
  );
}

interface RateProps extends FieldsProps {
  field: "produce" | "fetch";
  label: string;
}

function RateInput({ form, field, label }: RateProps): ReactElement {
  const bytes = parseRate(form.values[field]);
  return (
    <TextInput
      label={label}
      placeholder="Not limited"
      description={typeof bytes === "number" ? exactRate(bytes) : "Such as 10 MiB or 500 kB"}
      autoComplete="off"
      {...form.getInputProps(field)}
    />
  );
}
