import { Group } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useNavigate, useParams } from "@tanstack/react-router";
import type { ReactElement } from "react";
import { ErrorPanel } from "@/components/ErrorPanel";
import { GuardedButton } from "@/components/GuardedButton";
import { SidePanel } from "@/components/SidePanel";
import { groupListQuery } from "@/features/groups/api/groups";
import { partitionsQuery } from "@/features/topics/api/topics";
import { AddPartitions } from "@/features/topics/components/AddPartitions";
import { DeleteRecords } from "@/features/topics/components/DeleteRecords";
import { PartitionTable } from "@/features/topics/components/PartitionTable";
import { SkipDamaged } from "@/features/topics/components/SkipDamaged";
import { useClusterRefusal } from "./useCluster";
import { usePanel } from "./usePanel";

/** The partitions of a topic: partitions are added, and records deleted, in side panels. */
export function TopicPartitionsPage(): ReactElement {
  const { clusterId, topic } = useParams({ from: "/frame/clusters/$clusterId/topics/$topic" });
  const { data, error, refetch } = useQuery(partitionsQuery(clusterId, topic));
  const panel = usePanel("add");
  const deletion = usePanel("delete-records");
  const skipped = skippedBatch(panel.name);
  const navigate = useNavigate();
  const groups = useQuery(groupListQuery(clusterId)).data;
  const refused = useClusterRefusal();
  if (error && !data) {
    const retry = (): void => void refetch();
    return <ErrorPanel error={error} what="The partitions could not be read" onRetry={retry} />;
  }
  return (
    <>
      <Group justify="flex-end" gap="xs" mb="sm">
        <GuardedButton refused={refused} variant="default" onClick={deletion.open} disabled={!data}>
          Delete records
        </GuardedButton>
        <GuardedButton refused={refused} variant="default" onClick={panel.open} disabled={!data}>
          Add partitions
        </GuardedButton>
      </Group>
      <PartitionTable
        partitions={data}
        refused={refused}
        onSkip={(partition, offset) => {
          const name = `skip-damaged-${String(partition)}-${offset}`;
          void navigate({ to: ".", search: (before) => ({ ...before, panel: name }) });
        }}
      />
      <SidePanel
        opened={panel.opened && !refused && data !== undefined}
        onClose={panel.close}
        title="Add partitions"
      >
        <AddPartitions
          clusterId={clusterId}
          topic={topic}
          partitions={data?.length ?? 0}
          onDone={panel.close}
        />
      </SidePanel>
      <SidePanel
        opened={deletion.opened && !refused && data !== undefined}
        onClose={deletion.close}
        title={`Delete records of ${topic}`}
        size={560}
      >
        <DeleteRecords
          clusterId={clusterId}
          topic={topic}
          partitions={data?.length ?? 0}
          groups={groups ?? []}
          onDone={deletion.close}
        />
      </SidePanel>
      <SidePanel
        opened={skipped !== undefined && !refused}
        onClose={panel.close}
        title={`Delete up to a damaged batch of ${topic}`}
        size={560}
      >
        {skipped && (
          <SkipDamaged
            key={panel.name}
            clusterId={clusterId}
            topic={topic}
            {...skipped}
            groups={groups ?? []}
            onDone={panel.close}
          />
        )}
      </SidePanel>
    </>
  );
}

/** Returns the partition and the offset in a panel's name; undefined where it is another panel. */
function skippedBatch(
  panel: string | undefined,
): { partition: number; firstOffset: string } | undefined {
  const [, partition, offset] = /^skip-damaged-(\d{1,10})-(\d{1,19})$/.exec(panel ?? "") ?? [];
  if (partition === undefined || offset === undefined) return undefined;
  return { partition: Number(partition), firstOffset: offset };
}
