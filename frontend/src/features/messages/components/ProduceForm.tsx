import {
  ActionIcon,
  Button,
  Group,
  Select,
  Stack,
  Switch,
  Textarea,
  TextInput,
} from "@mantine/core";
import { useForm, type UseFormReturnType } from "@mantine/form";
import { notifications } from "@mantine/notifications";
import { IconPlus, IconTrash } from "@tabler/icons-react";
import { type ReactElement } from "react";
import { ErrorPanel } from "@/components/ErrorPanel";
import type { ProduceRequest } from "@/lib/api/types";
import { useProduce } from "../api/messages";

interface Values {
  key: string;
  value: string;
  tombstone: boolean;
  partition: string;
  headers: { key: string; value: string }[];
}

/** Returns the request for the values of the form. An empty key means no key. */
export function produceBody(values: Values): ProduceRequest {
  const body: ProduceRequest = {
    key: values.key === "" ? null : values.key,
    value: values.tombstone ? null : values.value,
    headers: values.headers.filter((header) => header.key !== ""),
  };
  if (values.partition !== "") body.partition = Number(values.partition);
  return body;
}

interface Props {
  clusterId: string;
  topic: string;
  partitions: number;
}

/** The form that produces one record. It stays open for the next one. */
export function ProduceForm({ clusterId, topic, partitions }: Props): ReactElement {
  const produce = useProduce(clusterId, topic);
  const form = useForm<Values>({
    initialValues: { key: "", value: "", tombstone: false, partition: "", headers: [] },
  });
  const submit = form.onSubmit((values) => {
    produce.mutate(produceBody(values), {
      onSuccess: ({ partition, offset }) => {
        const place = `partition ${String(partition)}, offset ${String(offset)}`;
        notifications.show({ message: `Written to ${place}` });
      },
    });
  });
  const numbers = Array.from({ length: partitions }, (_, number) => String(number));
  return (
    <form onSubmit={submit}>
      <Stack gap="sm">
        <TextInput
          label="Key"
          description="Empty for a record without a key"
          styles={{ input: { fontFamily: "var(--mantine-font-family-monospace)" } }}
          data-autofocus
          {...form.getInputProps("key")}
        />
        <Textarea
          label="Value"
          autosize
          minRows={6}
          maxRows={18}
          disabled={form.values.tombstone}
          styles={{ input: { fontFamily: "var(--mantine-font-family-monospace)" } }}
          {...form.getInputProps("value")}
        />
        <Switch
          size="xs"
          label="No value: a tombstone for the key"
          {...form.getInputProps("tombstone", { type: "checkbox" })}
        />
        <Select
          label="Partition"
          data={[{ value: "", label: "By the key" }, ...numbers]}
          allowDeselect={false}
          {...form.getInputProps("partition")}
        />
        <HeaderFields form={form} />
        {produce.error && <ErrorPanel error={produce.error} what="No confirmation of the record" />}
        <Group justify="space-between">
          <Button
            variant="subtle"
            leftSection={<IconPlus size={14} />}
            onClick={() => {
              form.insertListItem("headers", { key: "", value: "" });
            }}
          >
            Header
          </Button>
          <Button type="submit" loading={produce.isPending}>
            Produce
          </Button>
        </Group>
      </Stack>
    </form>
  );
}

function HeaderFields({ form }: { form: UseFormReturnType<Values> }): ReactElement {
  return (
    <>
      {form.values.headers.map((_, index) => (
        <Group key={index} gap={6} wrap="nowrap">
          <TextInput
            size="xs"
            flex={1}
            placeholder="Header"
            aria-label={`Name of header ${String(index + 1)}`}
            {...form.getInputProps(`headers.${String(index)}.key`)}
          />
          <TextInput
            size="xs"
            flex={2}
            placeholder="Value"
            aria-label={`Value of header ${String(index + 1)}`}
            {...form.getInputProps(`headers.${String(index)}.value`)}
          />
          <ActionIcon
            variant="subtle"
            color="gray"
            aria-label={`Remove header ${String(index + 1)}`}
            onClick={() => {
              form.removeListItem("headers", index);
            }}
          >
            <IconTrash size={15} />
          </ActionIcon>
        </Group>
      ))}
    </>
  );
}
