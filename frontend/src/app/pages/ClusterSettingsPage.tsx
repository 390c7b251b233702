import { Skeleton } from "@mantine/core";
import { Link, useNavigate } from "@tanstack/react-router";
import type { ReactElement } from "react";
import { Section } from "@/components/Section";
import { ClusterSettings } from "@/features/clusters/components/ClusterSettings";
import { Limits } from "@/features/limits/components/Limits";
import { useCluster, useClusterRefusal } from "./useCluster";

export function ClusterSettingsPage(): ReactElement {
  const cluster = useCluster();
  const navigate = useNavigate();
  const refused = useClusterRefusal();
  if (!cluster) return <Skeleton height={220} maw={560} />;
  return (
    <>
      <ClusterSettings
        cluster={cluster}
        refused={refused}
        onDeleted={() => void navigate({ to: "/clusters" })}
      />
      {cluster.deleted_at === null && (
        <Section
          title="Limits"
          lead="How much of each limit this cluster uses, and what happens at the limit."
          actions={
            <Link to="/settings/limits" style={{ fontSize: 13 }}>
              All limits, and requests for more
            </Link>
          }
        >
          <Limits clusterId={cluster.id} />
        </Section>
      )}
    </>
  );
}
