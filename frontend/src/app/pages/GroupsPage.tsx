import { Stack } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import type { ReactElement } from "react";
import { Empty } from "@/components/Empty";
import { Listed } from "@/components/Listed";
import { Section } from "@/components/Section";
import { groupListQuery } from "@/features/groups/api/groups";
import { GroupTable } from "@/features/groups/components/GroupTable";
import { SampleNote } from "./SampleNote";
import { useClusterId } from "./useCluster";

export function GroupsPage(): ReactElement {
  const clusterId = useClusterId();
  const groups = useQuery(groupListQuery(clusterId));
  return (
    <Section
      title="Consumer groups"
      lead="Consumers that share the work of reading, and how far each group is behind."
    >
      <Listed
        query={groups}
        what="The groups could not be read"
        empty={
          <Empty
            title="No consumer group yet"
            action={
              <Link to="/clusters/$clusterId/connect" params={{ clusterId }}>
                See the consumers in five languages
              </Link>
            }
          >
            A group appears as soon as a consumer with a <code>group.id</code> subscribes to a
            topic. Its lag is shown here in records and in seconds.
          </Empty>
        }
      >
        {(rows) => (
          <Stack gap="sm">
            <SampleNote at={rows?.[0]?.sampled_at} />
            <GroupTable clusterId={clusterId} groups={rows} />
          </Stack>
        )}
      </Listed>
    </Section>
  );
}
