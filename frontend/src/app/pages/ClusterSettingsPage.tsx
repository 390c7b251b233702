import { Skeleton } from "@mantine/core";
import { useNavigate } from "@tanstack/react-router";
import type { ReactElement } from "react";
import { ClusterSettings } from "@/features/clusters/components/ClusterSettings";
import { useCluster, useClusterRefusal } from "./useCluster";

export function ClusterSettingsPage(): ReactElement {
  const cluster = useCluster();
  const navigate = useNavigate();
  const refused = useClusterRefusal();
  if (!cluster) return <Skeleton height={220} maw={560} />;
  return (
    <ClusterSettings
      cluster={cluster}
      refused={refused}
      onDeleted={() => void navigate({ to: "/clusters" })}
    />
  );
}
