import { Button, Group, Select, Stack, TextInput } from "@mantine/core";
import { useForm } from "@mantine/form";
import { notifications } from "@mantine/notifications";
import { type ReactElement, useState } from "react";
import { ConfirmByName } from "@/components/ConfirmByName";
import { ErrorPanel } from "@/components/ErrorPanel";
import { Section } from "@/components/Section";
import { formErrors } from "@/lib/api/problem";
import type { Cluster } from "@/lib/api/types";
import { formatDuration } from "@/lib/format/time";
import { type ClusterChange, useDeleteCluster, useUpdateCluster } from "../api/clusters";

const TIMEOUTS_S = [30, 60, 300, 900, 3_600, 14_400, 86_400];

/** Only what differs from the cluster as it is. */
export function changeOf(
  cluster: Pick<Cluster, "name" | "spec">,
  values: { name: string; idle: string },
): ClusterChange {
  const change: ClusterChange = {};
  if (values.name.trim() !== cluster.name) change.name = values.name.trim();
  const idle = Number(values.idle);
  if (idle !== cluster.spec.idle_timeout_s) change.idle_timeout_s = idle;
  return change;
}

/** Name and idle time, and the end of the cluster. */
export function ClusterSettings({
  cluster,
  onDeleted,
}: {
  cluster: Cluster;
  onDeleted: () => void;
}): ReactElement {
  return (
    <div style={{ maxWidth: 560 }}>
      <Section title="General">
        <GeneralForm cluster={cluster} />
      </Section>
      <Section title="Delete" lead="Its topics, records, credentials and rules go with it.">
        <DeleteCluster cluster={cluster} onDeleted={onDeleted} />
      </Section>
    </div>
  );
}

function GeneralForm({ cluster }: { cluster: Cluster }): ReactElement {
  const update = useUpdateCluster(cluster);
  const current = cluster.spec.idle_timeout_s;
  const form = useForm({
    initialValues: { name: cluster.name, idle: String(current) },
    validate: { name: (name) => (name.trim() ? null : "Name the cluster") },
  });
  const times = [...new Set([...TIMEOUTS_S, current])].sort((a, b) => a - b);
  const change = changeOf(cluster, form.values);
  const submit = form.onSubmit(() => {
    update.mutate(change, {
      onSuccess: () => {
        notifications.show({ message: "The settings are saved" });
      },
      onError: (error) => {
        form.setErrors(formErrors(error));
      },
    });
  });
  return (
    <form onSubmit={submit}>
      <Stack gap="md">
        <TextInput label="Name" autoComplete="off" {...form.getInputProps("name")} />
        <Select
          label="Idle time"
          description="With no client connected for this long, the cluster goes to sleep"
          data={times.map((s) => ({ value: String(s), label: formatDuration(s) }))}
          allowDeselect={false}
          {...form.getInputProps("idle")}
        />
        {update.error && <ErrorPanel error={update.error} what="The settings were not saved" />}
        <Group>
          <Button
            type="submit"
            loading={update.isPending}
            disabled={Object.keys(change).length === 0}
          >
            Save
          </Button>
        </Group>
      </Stack>
    </form>
  );
}

function DeleteCluster({
  cluster,
  onDeleted,
}: {
  cluster: Cluster;
  onDeleted: () => void;
}): ReactElement {
  const [asking, setAsking] = useState(false);
  const remove = useDeleteCluster(cluster.id);
  return (
    <>
      <Button
        color="red"
        variant="light"
        onClick={() => {
          setAsking(true);
        }}
      >
        Delete the cluster
      </Button>
      <ConfirmByName
        opened={asking}
        onClose={() => {
          setAsking(false);
          remove.reset();
        }}
        name={cluster.name}
        title="Delete the cluster"
        action="Delete the cluster"
        pending={remove.isPending}
        error={remove.error}
        onConfirm={() => {
          remove.mutate(cluster.name, { onSuccess: onDeleted });
        }}
      >
        Clients of <code>{cluster.name}</code> are refused from now on. Its data is kept for 7 days;
        until then <code>POST /api/v1/clusters/{cluster.id}:undelete</code> brings it back.
      </ConfirmByName>
    </>
  );
}
