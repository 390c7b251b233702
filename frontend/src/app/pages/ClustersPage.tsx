import { IconPlus } from "@tabler/icons-react";
import { useQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import type { ReactElement } from "react";
import { Empty } from "@/components/Empty";
import { GuardedButton } from "@/components/GuardedButton";
import { Listed } from "@/components/Listed";
import { PageHead } from "@/components/PageHead";
import { SidePanel } from "@/components/SidePanel";
import { clusterListQuery } from "@/features/clusters/api/clusters";
import { ClusterTable } from "@/features/clusters/components/ClusterTable";
import { NewClusterForm } from "@/features/clusters/components/NewClusterForm";
import { useRefusalEverywhere } from "@/lib/permissions";
import { TrafficOfAll } from "./TrafficOfAll";
import { usePanel } from "./usePanel";
import { useProjectNames } from "./useProjectNames";

export function ClustersPage(): ReactElement {
  const navigate = useNavigate();
  const panel = usePanel("new");
  const clusters = useQuery(clusterListQuery);
  const projects = useProjectNames();
  const refused = useRefusalEverywhere("write");
  const button = (
    <GuardedButton refused={refused} leftSection={<IconPlus size={14} />} onClick={panel.open}>
      New cluster
    </GuardedButton>
  );
  return (
    <>
      <PageHead
        title="Clusters"
        lead="Each cluster is a Kafka of its own. It sleeps while no client is connected."
        actions={button}
      />
      <TrafficOfAll />
      <Listed
        query={clusters}
        what="The clusters could not be read"
        empty={
          <Empty title="No cluster yet" action={button}>
            A cluster is made in a moment and costs nothing while it sleeps.
          </Empty>
        }
      >
        {(rows) => <ClusterTable clusters={rows} projects={projects} />}
      </Listed>
      <SidePanel opened={panel.opened && !refused} onClose={panel.close} title="New cluster">
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
