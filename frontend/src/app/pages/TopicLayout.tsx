import { useQuery } from "@tanstack/react-query";
import { Link, Outlet, useNavigate, useParams } from "@tanstack/react-router";
import type { ReactElement } from "react";
import { ErrorPanel } from "@/components/ErrorPanel";
import { PageHead } from "@/components/PageHead";
import { topicQuery } from "@/features/topics/api/topics";
import { DeleteTopic } from "@/features/topics/components/DeleteTopic";
import { readableConfig } from "@/features/topics/configs";
import type { Topic } from "@/lib/api/types";
import { TabLinks, tabProps } from "./TabLinks";
import { useClusterRefusal } from "./useCluster";

function leadOf(topic: Topic): string {
  const value = (name: string): string | null =>
    topic.config_details?.find((config) => config.name === name)?.value ?? null;
  const kept = readableConfig("retention.ms", value("retention.ms"));
  const partitions = `${String(topic.partitions)} partition${topic.partitions === 1 ? "" : "s"}`;
  return [partitions, kept && `kept for ${kept}`.replace("for no limit", "without limit")]
    .filter(Boolean)
    .join(", ");
}

/** The head and the tabs of a topic's pages. */
export function TopicLayout(): ReactElement {
  const { clusterId, topic: name } = useParams({
    from: "/frame/clusters/$clusterId/topics/$topic",
  });
  const navigate = useNavigate();
  const refused = useClusterRefusal();
  const { data: topic, error, refetch } = useQuery(topicQuery(clusterId, name));
  if (error && !topic) {
    return (
      <ErrorPanel error={error} what="The topic could not be read" onRetry={() => void refetch()} />
    );
  }
  const params = { clusterId, topic: name };
  return (
    <>
      <PageHead
        title={<span style={{ fontFamily: "var(--mantine-font-family-monospace)" }}>{name}</span>}
        lead={topic ? leadOf(topic) : "\u00a0"}
        actions={
          <DeleteTopic
            clusterId={clusterId}
            topic={name}
            refused={refused}
            onDeleted={() => navigate({ to: "/clusters/$clusterId/topics", params: { clusterId } })}
          />
        }
      />
      <TabLinks label="Topic">
        <Link to="/clusters/$clusterId/topics/$topic" params={params} {...tabProps(true)}>
          Messages
        </Link>
        <Link to="/clusters/$clusterId/topics/$topic/consumers" params={params} {...tabProps()}>
          Consumers
        </Link>
        <Link to="/clusters/$clusterId/topics/$topic/partitions" params={params} {...tabProps()}>
          Partitions
        </Link>
        <Link to="/clusters/$clusterId/topics/$topic/configuration" params={params} {...tabProps()}>
          Configuration
        </Link>
      </TabLinks>
      <Outlet />
    </>
  );
}
