import { Stack, Switch } from "@mantine/core";
import { notifications } from "@mantine/notifications";
import { type ReactElement, useState } from "react";
import { ConfirmByName } from "@/components/ConfirmByName";
import { ErrorPanel } from "@/components/ErrorPanel";
import { GuardedButton } from "@/components/GuardedButton";
import type { Cluster } from "@/lib/api/types";
import { useDeleteCluster, useUndeleteCluster, useUpdateCluster } from "../api/clusters";

interface Props {
  cluster: Cluster;
  onDeleted: () => void;
  refused: string | undefined;
}

/**
 * The protection from deletion, and the button that deletes the cluster after its name was typed.
 */
export function DeleteCluster({ cluster, onDeleted, refused }: Props): ReactElement {
  const [asking, setAsking] = useState(false);
  const update = useUpdateCluster(cluster);
  const remove = useDeleteCluster(cluster.id);
  return (
    <Stack gap="md" align="flex-start">
      <Switch
        label="Protected from deletion"
        description="While this is on it cannot be deleted, neither here nor by REST"
        checked={cluster.deletion_protection}
        disabled={update.isPending || refused !== undefined}
        onChange={(event) => {
          update.mutate({ deletion_protection: event.currentTarget.checked });
        }}
      />
      {update.error && <ErrorPanel error={update.error} what="The protection was not changed" />}
      <GuardedButton
        refused={refused}
        color="red"
        variant="light"
        disabled={cluster.deletion_protection}
        onClick={() => {
          setAsking(true);
        }}
      >
        Delete the cluster
      </GuardedButton>
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
          remove.mutate(cluster.name, {
            onSuccess: () => {
              notifications.show({ message: `${cluster.name} is deleted` });
              onDeleted();
            },
          });
        }}
      >
        Clients of <code>{cluster.name}</code> are refused from now on. Its topics, records,
        credentials and rules are kept for 7 days: until then it can be restored from its page. That
        costs nothing, unless it was deleted and restored before: then storage and partitions are
        billed to the end of the 7 days.
      </ConfirmByName>
    </Stack>
  );
}

/** The button that restores a deleted cluster. */
export function RestoreCluster({ cluster, refused }: Omit<Props, "onDeleted">): ReactElement {
  const restore = useUndeleteCluster(cluster.id);
  return (
    <Stack gap="md" align="flex-start">
      <GuardedButton
        refused={refused}
        variant="default"
        loading={restore.isPending}
        onClick={() => {
          restore.mutate(undefined);
        }}
      >
        Restore the cluster
      </GuardedButton>
      {restore.error && <ErrorPanel error={restore.error} what="The cluster was not restored" />}
    </Stack>
  );
}
