import { IconPencilPlus } from "@tabler/icons-react";
import { useQuery } from "@tanstack/react-query";
import { Link, useNavigate, useParams, useSearch } from "@tanstack/react-router";
import type { ReactElement } from "react";
import { GuardedButton } from "@/components/GuardedButton";
import { Note, NoteMore } from "@/components/Note";
import { SidePanel } from "@/components/SidePanel";
import { MessageExplorer } from "@/features/messages/components/MessageExplorer";
import { ProduceForm } from "@/features/messages/components/ProduceForm";
import { topicQuery } from "@/features/topics/api/topics";
import { useCluster, useClusterRefusal } from "./useCluster";
import { usePanel } from "./usePanel";

export function TopicMessagesPage(): ReactElement {
  const { clusterId, topic: name } = useParams({
    from: "/frame/clusters/$clusterId/topics/$topic",
  });
  const search = useSearch({ from: "/frame/clusters/$clusterId/topics/$topic/" });
  const navigate = useNavigate();
  const panel = usePanel("produce");
  const cluster = useCluster();
  const refused = useClusterRefusal();
  const unreadable = useClusterRefusal("data.read");
  const partitions = useQuery(topicQuery(clusterId, name)).data?.partitions ?? 1;
  const { from = "newest", partition, offset, timestamp, filter } = search;
  if (unreadable !== undefined) {
    return (
      <Note tone="quiet">
        {unreadable}
        <NoteMore>
          To read records is a right of its own, and the audit log says who read what. Consumers,
          partitions and configuration are shown without it.
        </NoteMore>
      </Note>
    );
  }
  return (
    <>
      <MessageExplorer
        clusterId={clusterId}
        topic={name}
        partitions={partitions}
        asleep={cluster?.status.phase === "asleep"}
        place={{ from, partition, offset, timestamp, filter }}
        onPlace={(place) => void navigate({ to: ".", search: place })}
        firstStep={
          <>
            Produce one here, or{" "}
            <Link to="/clusters/$clusterId/connect" params={{ clusterId }}>
              connect a client
            </Link>{" "}
            that writes to <code>{name}</code>.
          </>
        }
        actions={
          <GuardedButton
            refused={refused}
            leftSection={<IconPencilPlus size={14} />}
            onClick={panel.open}
          >
            Produce
          </GuardedButton>
        }
      />
      <SidePanel
        opened={panel.opened && !refused}
        onClose={panel.close}
        title={`Produce to ${name}`}
      >
        <ProduceForm clusterId={clusterId} topic={name} partitions={partitions} />
      </SidePanel>
    </>
  );
}
