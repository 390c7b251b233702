import { Skeleton } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useParams } from "@tanstack/react-router";
import type { ReactElement } from "react";
import { Answered } from "@/components/Answered";
import { topicQuery } from "@/features/topics/api/topics";
import { ConfigTable } from "@/features/topics/components/ConfigTable";
import { useClusterRefusal } from "./useCluster";

export function TopicConfigurationPage(): ReactElement {
  const { clusterId, topic: name } = useParams({
    from: "/frame/clusters/$clusterId/topics/$topic",
  });
  const refused = useClusterRefusal();
  const query = useQuery(topicQuery(clusterId, name));
  const { data: topic } = query;
  return (
    <Answered queries={[query]} what="The configuration could not be read">
      {topic ? (
        <ConfigTable clusterId={clusterId} topic={topic} refused={refused} />
      ) : (
        <Skeleton height={320} />
      )}
    </Answered>
  );
}
