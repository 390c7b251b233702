import { Skeleton } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useParams } from "@tanstack/react-router";
import type { ReactElement } from "react";
import { topicQuery } from "@/features/topics/api/topics";
import { ConfigTable } from "@/features/topics/components/ConfigTable";

export function TopicConfigurationPage(): ReactElement {
  const { clusterId, topic: name } = useParams({
    from: "/frame/clusters/$clusterId/topics/$topic",
  });
  const { data: topic } = useQuery(topicQuery(clusterId, name));
  return topic ? <ConfigTable clusterId={clusterId} topic={topic} /> : <Skeleton height={320} />;
}
