import { Skeleton } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useParams } from "@tanstack/react-router";
import type { ReactElement } from "react";
import { topicQuery } from "@/features/topics/api/topics";
import { ConfigTable } from "@/features/topics/components/ConfigTable";
import { useClusterRefusal } from "./useCluster";

export function TopicConfigurationPage(): ReactElement {
  const { clusterId, topic: name } = useParams({
    from: "/frame/clusters/$clusterId/topics/$topic",
  });
  const refused = useClusterRefusal();
  const { data: topic } = useQuery(topicQuery(clusterId, name));
  if (!topic) return <Skeleton height={320} />;
  return <ConfigTable clusterId={clusterId} topic={topic} refused={refused} />;
}
