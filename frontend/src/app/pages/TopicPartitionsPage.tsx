import { Button, Group, Skeleton } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useParams } from "@tanstack/react-router";
import type { ReactElement } from "react";
import { SidePanel } from "@/components/SidePanel";
import { topicQuery } from "@/features/topics/api/topics";
import { AddPartitions } from "@/features/topics/components/AddPartitions";
import { PartitionTable } from "@/features/topics/components/PartitionTable";
import { usePanel } from "./usePanel";

/** Where each partition begins and ends. */
export function TopicPartitionsPage(): ReactElement {
  const { clusterId, topic: name } = useParams({
    from: "/frame/clusters/$clusterId/topics/$topic",
  });
  const { data: topic } = useQuery(topicQuery(clusterId, name));
  const panel = usePanel("add");
  if (!topic) return <Skeleton height={180} />;
  return (
    <>
      <Group justify="flex-end" mb="sm">
        <Button variant="default" onClick={panel.open}>
          Add partitions
        </Button>
      </Group>
      <PartitionTable topic={topic} />
      <SidePanel opened={panel.opened} onClose={panel.close} title="Add partitions">
        <AddPartitions
          clusterId={clusterId}
          topic={name}
          partitions={topic.partitions}
          onDone={panel.close}
        />
      </SidePanel>
    </>
  );
}
