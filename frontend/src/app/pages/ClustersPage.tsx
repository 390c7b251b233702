import { Button } from "@mantine/core";
import { IconPlus } from "@tabler/icons-react";
import { useQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import type { ReactElement } from "react";
import { Empty } from "@/components/Empty";
import { ErrorPanel } from "@/components/ErrorPanel";
import { PageHead } from "@/components/PageHead";
import { SidePanel } from "@/components/SidePanel";
import { clusterListQuery } from "@/features/clusters/api/clusters";
import { ClusterTable } from "@/features/clusters/components/ClusterTable";
import { NewClusterForm } from "@/features/clusters/components/NewClusterForm";
import { usePanel } from "./usePanel";

export function ClustersPage(): ReactElement {
  const navigate = useNavigate();
  const panel = usePanel("new");
  const { data, error, refetch } = useQuery(clusterListQuery);
  const button = (
    <Button leftSection={<IconPlus size={14} />} onClick={panel.open}>
      New cluster
    </Button>
  );
  return (
    <>
      <PageHead
        title="Clusters"
        lead="Each one a Kafka of its own. A cluster sleeps when nobody is connected."
        actions={button}
      />
      {error && !data && (
        <ErrorPanel
          error={error}
          what="The clusters could not be read"
          onRetry={() => void refetch()}
        />
      )}
      {data?.length === 0 ? (
        <Empty title="No cluster yet" action={button}>
          A cluster is made in a moment and costs nothing while it sleeps.
        </Empty>
      ) : (
        (data ?? !error) && <ClusterTable clusters={data} />
      )}
      <SidePanel opened={panel.opened} onClose={panel.close} title="New cluster">
        <NewClusterForm
          onCancel={panel.close}
          onDone={(clusterId) =>
            void navigate({ to: "/clusters/$clusterId", params: { clusterId } })
          }
        />
      </SidePanel>
    </>
  );
}
