import { Stack } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { Link, useParams } from "@tanstack/react-router";
import type { ReactElement } from "react";
import { Empty } from "@/components/Empty";
import { ErrorPanel } from "@/components/ErrorPanel";
import { groupListQuery } from "@/features/groups/api/groups";
import { GroupTable } from "@/features/groups/components/GroupTable";
import { groupsOfTopic } from "@/features/groups/ofTopic";
import { SampleNote } from "./SampleNote";

/** The groups that read a topic, with their lag in it. */
export function TopicConsumersPage(): ReactElement {
  const { clusterId, topic } = useParams({ from: "/frame/clusters/$clusterId/topics/$topic" });
  const { data, error, refetch } = useQuery(groupListQuery(clusterId));
  if (error && !data) {
    return (
      <ErrorPanel
        error={error}
        what="The groups could not be read"
        onRetry={() => void refetch()}
      />
    );
  }
  const groups = data && groupsOfTopic(data, topic);
  return (
    <Stack gap="sm">
      <SampleNote at={data?.[0]?.sampled_at} />
      {groups?.length === 0 ? (
        <Empty
          title="No group reads this topic"
          action={
            <Link to="/clusters/$clusterId/connect" params={{ clusterId }}>
              See the consumers in five languages
            </Link>
          }
        >
          A group is listed here once it has members on this topic or has committed an offset in it.
        </Empty>
      ) : (
        <GroupTable clusterId={clusterId} groups={groups} />
      )}
    </Stack>
  );
}
