import { Skeleton } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import type { ReactElement } from "react";
import { Answered } from "@/components/Answered";
import { CopyText } from "@/components/CopyText";
import { Section } from "@/components/Section";
import { Tile, Tiles } from "@/components/Tile";
import { BrokerList } from "@/features/clusters/components/BrokerList";
import { StateNote } from "@/features/clusters/components/StateNote";
import { costsQuery } from "@/features/costs/api/costs";
import { type MonthCost, monthCost } from "@/features/costs/clusters";
import { ROWS, rowsOfMonth } from "@/features/costs/links";
import { credentialsQuery } from "@/features/credentials/api/credentials";
import { groupListQuery } from "@/features/groups/api/groups";
import { GroupTable } from "@/features/groups/components/GroupTable";
import { topicListQuery } from "@/features/topics/api/topics";
import { TopicTable } from "@/features/topics/components/TopicTable";
import { UnbilledTile } from "@/features/usage/components/UnbilledTile";
import { isStatus } from "@/lib/api/client";
import type { Cluster, Credential, ListenerName } from "@/lib/api/types";
import { formatCount, formatNumber } from "@/lib/format/bytes";
import { formatLagSeconds, sumLag } from "@/lib/format/lag";
import { formatMoney } from "@/lib/format/money";
import { formatDuration } from "@/lib/format/time";
import { monthOf } from "@/lib/format/utc";
import classes from "./ClusterPage.module.css";
import { useCluster, useClusterId } from "./useCluster";

/** The overview of a cluster: its state, its addresses, its topics and its groups. */
export function ClusterPage(): ReactElement {
  const clusterId = useClusterId();
  const cluster = useCluster();
  const { data: names } = useQuery({ ...credentialsQuery(clusterId), select: namesByPrincipal });
  const topicList = useQuery(topicListQuery(clusterId));
  const groupList = useQuery(groupListQuery(clusterId));
  const topics = topicList.data;
  const groups = groupList.data;
  const worst = groups && sumLag(groups);
  const partitions = topics?.reduce((sum, topic) => sum + topic.partitions, 0);
  const params = { clusterId };
  return (
    <>
      <div className={classes.state}>
        {cluster ? <StateNote cluster={cluster} /> : <Skeleton height={63} />}
      </div>
      <Answered queries={[topicList, groupList]} what="What is in the cluster could not be read">
        <Tiles>
          <Tile label="Topics" value={topics && formatCount(topics.length)} />
          <Tile
            label="Partitions"
            value={partitions === undefined ? undefined : formatCount(partitions)}
          />
          <Tile label="Consumer groups" value={groups && formatCount(groups.length)} />
          <Tile
            label="Worst lag"
            value={worst && formatLagSeconds(worst.lag_seconds)}
            note={
              worst && worst.lag !== null
                ? `${formatNumber(worst.lag, "record")} in all`
                : undefined
            }
          />
          <Tile
            label="Idle time"
            value={cluster && formatDuration(cluster.spec.idle_timeout_s)}
            note="then it sleeps"
          />
          <CostTile clusterId={clusterId} />
          <UnbilledTile clusterId={clusterId} credentials={names ?? NO_NAMES} />
        </Tiles>
      </Answered>
      <Section
        title="Endpoints"
        actions={
          <Link to="/clusters/$clusterId/connect" params={params} className={classes.link}>
            Connect a client
          </Link>
        }
      >
        <Endpoints cluster={cluster} />
      </Section>
      {cluster && cluster.status.brokers.length > 0 && (
        <Section title="Brokers">
          <BrokerList brokers={cluster.status.brokers} />
        </Section>
      )}
      {topics?.length !== 0 && !(topicList.isError && topics === undefined) && (
        <Section
          title="Topics"
          actions={
            <Link to="/clusters/$clusterId/topics" params={params} className={classes.link}>
              All topics
            </Link>
          }
        >
          <TopicTable clusterId={clusterId} topics={topics?.slice(0, SHOWN)} />
        </Section>
      )}
      {groups && groups.length > 0 && (
        <Section
          title="Consumer groups"
          actions={
            <Link to="/clusters/$clusterId/groups" params={params} className={classes.link}>
              All groups
            </Link>
          }
        >
          <GroupTable clusterId={clusterId} groups={groups.slice(0, SHOWN)} />
        </Section>
      )}
    </>
  );
}

const SHOWN = 5;

const NO_NAMES: Record<string, string> = {};

const namesByPrincipal = (credentials: readonly Credential[]): Record<string, string> =>
  Object.fromEntries(credentials.map(({ principal, name }) => [principal, name]));

/** The cost of the cluster this month. It is empty for people who may not see costs. */
function CostTile({ clusterId }: { clusterId: string }): ReactElement | null {
  const month = monthOf(new Date());
  const { data: costs, error } = useQuery(costsQuery(month));
  if (isStatus(error, 403)) return null;
  if (error && !costs) return <Tile label="Cost this month" value="not known" />;
  const cost = costs && monthCost(costs, clusterId);
  return (
    <Tile
      label="Cost this month"
      value={
        costs &&
        cost && (
          <Link to="/usage" search={rowsOfMonth(month, { cluster: clusterId })} hash={ROWS}>
            {formatMoney(cost.soFar, costs.currency)}
          </Link>
        )
      }
      note={costs && cost && costWords(cost, costs.currency)}
    />
  );
}

function costWords({ forecast, beyond }: MonthCost, currency: string): string {
  const expected = `${formatMoney(forecast, currency)} by its end`;
  return beyond > 0
    ? `${expected}; ${formatMoney(beyond, currency)} more slipped past a budget and is not billed`
    : expected;
}

const NAMES: Record<ListenerName, string> = {
  SASL_PLAINTEXT: "Plain, on this machine only",
  SASL_SSL: "TLS",
};

function Endpoints({ cluster }: { cluster: Cluster | undefined }): ReactElement {
  return (
    <dl className={classes.endpoints}>
      {cluster?.endpoints.map(({ listener, bootstrap_servers }) => (
        <div key={listener}>
          <dt>{NAMES[listener]}</dt>
          <dd>
            <CopyText value={bootstrap_servers} what="the address" />
          </dd>
          <dd className={classes.protocol}>{listener}</dd>
        </div>
      ))}
      {cluster?.endpoints.length === 0 && (
        <p className={classes.none}>None yet. They appear once the cluster has been placed.</p>
      )}
    </dl>
  );
}
