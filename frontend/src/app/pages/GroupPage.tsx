import { Skeleton } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useNavigate, useParams } from "@tanstack/react-router";
import type { ReactElement } from "react";
import { Empty } from "@/components/Empty";
import { ErrorPanel } from "@/components/ErrorPanel";
import { GuardedButton } from "@/components/GuardedButton";
import { PageHead } from "@/components/PageHead";
import { Section } from "@/components/Section";
import { SidePanel } from "@/components/SidePanel";
import { Tile, Tiles } from "@/components/Tile";
import { groupListQuery, groupQuery } from "@/features/groups/api/groups";
import { DeleteGroup } from "@/features/groups/components/DeleteGroup";
import { GroupState } from "@/features/groups/components/GroupState";
import { MemberTable } from "@/features/groups/components/MemberTable";
import { PartitionLag } from "@/features/groups/components/PartitionLag";
import { ResetPanel } from "@/features/groups/components/ResetPanel";
import { formatLag, formatLagSeconds } from "@/lib/format/lag";
import { GroupAlerts } from "./GroupAlerts";
import { SampleNote } from "./SampleNote";
import { useClusterRefusal } from "./useCluster";
import { usePanel } from "./usePanel";

/** A consumer group: its members, its lag by partition, and the reset of its offsets. */
export function GroupPage(): ReactElement {
  const { clusterId, group: name } = useParams({
    from: "/frame/clusters/$clusterId/groups/$group",
  });
  const panel = usePanel("reset");
  const refused = useClusterRefusal();
  const { data: group, error, refetch } = useQuery(groupQuery(clusterId, name));
  const navigate = useNavigate();
  const others = (useQuery(groupListQuery(clusterId)).data ?? [])
    .map((other) => other.group)
    .filter((other) => other !== name);
  if (error && !group) {
    return (
      <ErrorPanel error={error} what="The group could not be read" onRetry={() => void refetch()} />
    );
  }
  return (
    <>
      <PageHead
        title={name}
        lead={
          group ? <GroupState state={group.state} /> : <Skeleton height={12} width={90} mt={6} />
        }
        actions={
          <>
            {group && (
              <DeleteGroup
                clusterId={clusterId}
                group={group}
                refused={refused}
                onDeleted={() =>
                  navigate({ to: "/clusters/$clusterId/groups", params: { clusterId } })
                }
              />
            )}
            <GuardedButton refused={refused} onClick={panel.open} disabled={!group}>
              Reset offsets
            </GuardedButton>
          </>
        }
      />
      {group?.sampled_at && (
        <div style={{ marginBottom: 20 }}>
          <SampleNote at={group.sampled_at} />
        </div>
      )}
      <Tiles>
        <Tile label="Lag, records" value={group && formatLag(group.lag)} />
        <Tile label="Lag, time" value={group && formatLagSeconds(group.lag_seconds)} />
        <Tile label="Members" value={group && String(group.members.length)} />
        <Tile label="Assignor" value={group && (group.protocol || "–")} />
        {group?.protocol_type && group.protocol_type !== "consumer" && (
          <Tile label="Protocol type" value={group.protocol_type} />
        )}
      </Tiles>
      <Section title="Lag by partition">
        {group ? <PartitionLag group={group} /> : <Skeleton height={140} />}
      </Section>
      <GroupAlerts clusterId={clusterId} group={name} />
      <Section title="Members">
        {group?.members.length === 0 ? (
          <Empty title="No consumer is connected">
            The group keeps its offsets. A consumer that joins goes on from them.
          </Empty>
        ) : (
          <MemberTable members={group?.members} />
        )}
      </Section>
      <SidePanel
        opened={panel.opened && !refused && group !== undefined}
        onClose={panel.close}
        title="Reset offsets"
        size={560}
      >
        {group && (
          <ResetPanel clusterId={clusterId} group={group} others={others} onDone={panel.close} />
        )}
      </SidePanel>
    </>
  );
}
