import { Button } from "@mantine/core";
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
import { storedQuery } from "@/features/usage/api/stored";
import { sessionQuery } from "@/lib/api/session";
import { isStatus } from "@/lib/api/client";
import type { Cluster, Phase } from "@/lib/api/types";
import { monthOf } from "@/lib/format/utc";
import { FirstStepsOf } from "./FirstStepsOf";
import { TrafficOfAll } from "./TrafficOfAll";
import { useProjectNames } from "./useProjectNames";

/** The overview of all clusters, and the first steps with those where some are left. */
export function OverviewPage(): ReactElement {
  const { data: session } = useQuery(sessionQuery);
  const { data: clusters, error, refetch } = useQuery(clusterListQuery);
  const projects = useProjectNames();
  return (
    <>
      <PageHead title={session?.organization?.name ?? "Overview"} />
      <TrafficOfAll />
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
      {clusters && <FirstStepsOf clusters={clusters} />}
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
  const stored = useQuery(storedQuery());
  if (isStatus(query.error, 403)) return null;
  return (
    <Section title="This month" actions={<Link to="/usage/costs">Cost</Link>}>
      <Answered queries={[query, stored]} what="The cost could not be read">
        <MonthSoFar costs={query.data} stored={stored.data} />
      </Answered>
    </Section>
  );
}
