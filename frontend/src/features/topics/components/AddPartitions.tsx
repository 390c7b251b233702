import { Button, Group, NumberInput, Stack, Text } from "@mantine/core";
import { notifications } from "@mantine/notifications";
import { type ReactElement, useState } from "react";
import { ErrorPanel } from "@/components/ErrorPanel";
import { useAddPartitions } from "../api/topics";

interface Props {
  clusterId: string;
  topic: string;
  partitions: number;
  onDone: () => void;
}

/** The form that adds partitions, with what that means for keys. */
export function AddPartitions({ clusterId, topic, partitions, onDone }: Props): ReactElement {
  const add = useAddPartitions(clusterId, topic);
  const [count, setCount] = useState<number | string>(partitions + 1);
  const valid = typeof count === "number" && Number.isInteger(count) && count > partitions;
  const submit = (): void => {
    if (!valid) return;
    const onSuccess = (): void => {
      notifications.show({ message: `${topic} has ${String(count)} partitions` });
      onDone();
    };
    add.mutate(count, { onSuccess });
  };
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        submit();
      }}
    >
      <Stack gap="md">
        <Text size="sm">
          The topic has {partitions}. Keys are spread anew: records of a key that come from now on
          may be in another partition than its earlier ones. Partitions cannot be removed.
        </Text>
        <NumberInput
          label="Partitions in all"
          min={partitions + 1}
          allowDecimal={false}
          value={count}
          onChange={setCount}
          error={valid ? null : `More than ${String(partitions)}`}
          data-autofocus
        />
        {add.error && <ErrorPanel error={add.error} what="No partition was added" />}
        <Group justify="flex-end" gap="xs">
          <Button type="submit" disabled={!valid} loading={add.isPending}>
            Add partitions
          </Button>
        </Group>
      </Stack>
    </form>
  );
}
