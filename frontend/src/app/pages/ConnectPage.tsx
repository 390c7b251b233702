import { Skeleton, Stack } from "@mantine/core";
import type { ReactElement } from "react";
import { ErrorPanel } from "@/components/ErrorPanel";
import { ConnectPanel } from "@/features/connect/components/ConnectPanel";
import { useCluster, useClusterId } from "./useCluster";
import { useConnect } from "./useConnect";

/** Code snippets that connect clients to a cluster. */
export function ConnectPage(): ReactElement {
  const clusterId = useClusterId();
  const cluster = useCluster();
  const { topics, createCredential, creating, error, refused } = useConnect(clusterId);
  if (!cluster) {
    return (
      <Stack gap="md">
        <Skeleton height={30} width={320} />
        <Skeleton height={52} />
        <Skeleton height={180} />
      </Stack>
    );
  }
  return (
    <Stack gap="md" maw={980}>
      {error && <ErrorPanel error={error} what="The credential was not created" />}
      <ConnectPanel
        cluster={cluster}
        topics={topics}
        creating={creating}
        refused={refused}
        onCreateCredential={createCredential}
      />
    </Stack>
  );
}
