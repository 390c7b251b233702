import { Skeleton } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import type { ReactElement } from "react";
import { Answered } from "@/components/Answered";
import { CopyText } from "@/components/CopyText";
import { Section } from "@/components/Section";
import { Tile, Tiles } from "@/components/Tile";
import { StateNote } from "@/features/clusters/components/StateNote";
import { costsQuery } from "@/features/costs/api/costs";
import { clusterCost } from "@/features/costs/clusters";
import { ROWS, rowsOfMonth } from "@/features/costs/links";
import { groupListQuery } from "@/features/groups/api/groups";
import { GroupTable } from "@/features/groups/components/GroupTable";
import { topicListQuery } from "@/features/topics/api/topics";
import { TopicTable } from "@/features/topics/components/TopicTable";
import { isStatus } from "@/lib/api/client";
import type { Cluster, ListenerName } from "@/lib/api/types";
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

/** The cost of the cluster this month. It is empty for people who may not see costs. */
function CostTile({ clusterId }: { clusterId: string }): ReactElement | null {
  const month = monthOf(new Date());
  const { data: costs, error } = useQuery(costsQuery(month));
  if (isStatus(error, 403)) return null;
  if (error && !costs) return <Tile label="Cost this month" value="not known" />;
  const cost = costs && clusterCost(costs, clusterId);
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
      note={costs && cost && `${formatMoney(cost.forecast, costs.currency)} by its end`}
    />
  );
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
