import { Stack } from "@mantine/core";
import { notifications } from "@mantine/notifications";
import { type ReactElement, useState } from "react";
import { ConfirmByName } from "@/components/ConfirmByName";
import { ErrorPanel } from "@/components/ErrorPanel";
import { GuardedButton } from "@/components/GuardedButton";
import type { Cluster } from "@/lib/api/types";
import { useSuspension } from "../api/clusters";

interface Props {
  cluster: Cluster;
  refused: string | undefined;
}

/** The button that suspends a cluster, or resumes a suspended one. */
export function SuspendCluster({ cluster, refused }: Props): ReactElement {
  const [asking, setAsking] = useState(false);
  const suspension = useSuspension(cluster.id);
  const suspended = cluster.status.phase === "suspended";
  const close = (): void => {
    setAsking(false);
    suspension.reset();
  };
  return (
    <Stack gap="md" align="flex-start">
      <GuardedButton
        refused={refused}
        variant="default"
        loading={suspension.isPending}
        onClick={() => {
          if (suspended) suspension.mutate("resume");
          else setAsking(true);
        }}
      >
        {suspended ? "Resume the cluster" : "Suspend the cluster"}
      </GuardedButton>
      {suspended && suspension.error && (
        <ErrorPanel error={suspension.error} what="The cluster was not resumed" />
      )}
      <ConfirmByName
        opened={asking}
        onClose={close}
        name={cluster.name}
        title="Suspend the cluster"
        action="Suspend the cluster"
        failure="It was not suspended"
        pending={suspension.isPending}
        error={suspension.error}
        onConfirm={() => {
          const onSuccess = (): void => {
            notifications.show({ message: `${cluster.name} is being suspended` });
            close();
          };
          suspension.mutate("suspend", { onSuccess });
        }}
      >
        Clients of <code>{cluster.name}</code> are disconnected and refused until you resume it
        here. Records, offsets and rules are kept, and storage is billed as before.
      </ConfirmByName>
    </Stack>
  );
}
