import { Button, Stack } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import type { ReactElement } from "react";
import { Answered } from "@/components/Answered";
import { Empty } from "@/components/Empty";
import { ErrorPanel } from "@/components/ErrorPanel";
import { PageHead } from "@/components/PageHead";
import { Section } from "@/components/Section";
import { Tile, Tiles } from "@/components/Tile";
import { clusterListQuery } from "@/features/clusters/api/clusters";
import { ClusterTable } from "@/features/clusters/components/ClusterTable";
import { costsQuery } from "@/features/costs/api/costs";
import { MonthSoFar } from "@/features/costs/components/MonthSoFar";
import { ConnectPanel } from "@/features/connect/components/ConnectPanel";
import { sessionQuery } from "@/lib/api/session";
import { isStatus } from "@/lib/api/client";
import type { Cluster, Phase } from "@/lib/api/types";
import { monthOf } from "@/lib/format/utc";
import { useConnect } from "./useConnect";
import { useProjectNames } from "./useProjectNames";

/** The overview of all clusters. With a single one, also the steps to its first message. */
export function OverviewPage(): ReactElement {
  const { data: session } = useQuery(sessionQuery);
  const { data: clusters, error, refetch } = useQuery(clusterListQuery);
  const projects = useProjectNames();
  const first = clusters?.length === 1 ? clusters[0] : undefined;
  return (
    <>
      <PageHead title={session?.organization?.name ?? "Overview"} />
      {error && !clusters && (
        <ErrorPanel
          error={error}
          what="The clusters could not be read"
          onRetry={() => void refetch()}
        />
      )}
      {clusters?.length === 0 ? (
        <Empty
          title="No cluster yet"
          action={
            <Button
              renderRoot={(props) => <Link to="/clusters" search={{ panel: "new" }} {...props} />}
            >
              New cluster
            </Button>
          }
        >
          A cluster is a Kafka of your own. It costs nothing while no client is connected.
        </Empty>
      ) : (
        (clusters ?? !error) && (
          <>
            <Counts clusters={clusters} />
            <MonthTiles />
            <Section title="Clusters">
              <ClusterTable clusters={clusters} projects={projects} />
            </Section>
          </>
        )
      )}
      {first && <FirstSteps cluster={first} />}
    </>
  );
}

function Counts({ clusters }: { clusters: Cluster[] | undefined }): ReactElement {
  const count = (...phases: Phase[]): string | undefined =>
    clusters && String(clusters.filter(({ status }) => phases.includes(status.phase)).length);
  return (
    <Tiles>
      <Tile
        label="Running"
        value={count("running")}
        note="clients are connected, or were just now"
      />
      <Tile label="Asleep" value={count("asleep")} note="no process; the next client wakes it" />
      <Tile label="Starting" value={count("provisioning")} />
      <Tile label="Need attention" value={count("failed", "suspended", "unknown")} />
    </Tiles>
  );
}

/** The cost of the month so far. It is empty for people who may not see costs. */
function MonthTiles(): ReactElement | null {
  const query = useQuery(costsQuery(monthOf(new Date())));
  if (isStatus(query.error, 403)) return null;
  return (
    <Section title="This month" actions={<Link to="/usage/costs">Cost</Link>}>
      <Answered queries={[query]} what="The cost could not be read">
        <MonthSoFar costs={query.data} />
      </Answered>
    </Section>
  );
}

function FirstSteps({ cluster }: { cluster: Cluster }): ReactElement {
  const { topics, createCredential, creating, error, refused } = useConnect(cluster.id);
  const topic = topics[0];
  return (
    <Section
      title={`Connect to ${cluster.name}`}
      lead="Paste a snippet, then watch its message arrive."
      actions={
        topic !== undefined && (
          <Button
            variant="default"
            renderRoot={(props) => (
              <Link
                to="/clusters/$clusterId/topics/$topic"
                params={{ clusterId: cluster.id, topic }}
                search={{ from: "live" }}
                {...props}
              />
            )}
          >
            Watch {topic} live
          </Button>
        )
      }
    >
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
    </Section>
  );
}
