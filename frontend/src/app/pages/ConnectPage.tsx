import { Skeleton, Stack } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import type { ReactElement } from "react";
import { firstStepsQuery } from "@/features/connect/api/connect";
import { ConnectPanel } from "@/features/connect/components/ConnectPanel";
import { areDone } from "@/features/connect/steps";
import type { Cluster } from "@/lib/api/types";
import { useCluster } from "./useCluster";
import { useConnect } from "./useConnect";

/** Code snippets that connect clients to a cluster. */
export function ConnectPage(): ReactElement {
  const cluster = useCluster();
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
      <Connecting cluster={cluster} />
    </Stack>
  );
}

function Connecting({ cluster }: { cluster: Cluster }): ReactElement {
  const { data: steps } = useQuery(firstStepsQuery(cluster.id));
  const open = steps && !areDone(steps) ? steps : undefined;
  return <ConnectPanel cluster={cluster} steps={open} {...useConnect(cluster)} />;
}
