import { IconPlus } from "@tabler/icons-react";
import { useQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import type { ReactElement } from "react";
import { Answered } from "@/components/Answered";
import { CodeBlock } from "@/components/CodeBlock";
import { Empty } from "@/components/Empty";
import { GuardedButton } from "@/components/GuardedButton";
import { Listed } from "@/components/Listed";
import { Note, NoteMore } from "@/components/Note";
import { Section } from "@/components/Section";
import { SidePanel } from "@/components/SidePanel";
import { deletedTopicsQuery, orphanedTopicsQuery } from "@/features/topics/api/deletedTopics";
import { topicListQuery } from "@/features/topics/api/topics";
import { DeletedTopicTable } from "@/features/topics/components/DeletedTopicTable";
import { NewTopicForm } from "@/features/topics/components/NewTopicForm";
import { OrphanedTopicTable } from "@/features/topics/components/OrphanedTopicTable";
import { TopicTable } from "@/features/topics/components/TopicTable";
import { useClusterId, useClusterRefusal } from "./useCluster";
import { usePanel } from "./usePanel";

/** The command that makes a topic by REST, for scripts. */
function command(clusterId: string): string {
  return [
    `curl -X POST ${location.origin}/api/v1/clusters/${clusterId}/topics \\`,
    `  -H "Authorization: Bearer $FRESHET_API_KEY" -H 'Content-Type: application/json' \\`,
    `  -d '{"name": "orders", "partitions": 3}'`,
  ].join("\n");
}

export function TopicsPage(): ReactElement {
  const clusterId = useClusterId();
  const navigate = useNavigate();
  const panel = usePanel("new");
  const list = useQuery(topicListQuery(clusterId));
  const refused = useClusterRefusal();
  const button = (
    <GuardedButton refused={refused} leftSection={<IconPlus size={14} />} onClick={panel.open}>
      New topic
    </GuardedButton>
  );
  return (
    <>
      <Section
        title="Topics"
        lead="Topics can be viewed and created while the cluster sleeps."
        actions={button}
      >
        <Listed
          query={list}
          what="The topics could not be read"
          empty={
            <Empty
              title="No topic yet"
              action={<CodeBlock title="Or by REST" code={command(clusterId)} />}
            >
              Create one here, or let a program do it. A client whose credential may create topics
              also makes one by writing to it.
            </Empty>
          }
        >
          {(rows) => <TopicTable clusterId={clusterId} topics={rows} />}
        </Listed>
      </Section>
      <Orphaned clusterId={clusterId} refused={refused} />
      <Deleted clusterId={clusterId} refused={refused} />
      <SidePanel opened={panel.opened && !refused} onClose={panel.close} title="New topic">
        <NewTopicForm
          clusterId={clusterId}
          onCancel={panel.close}
          onDone={(topic) =>
            void navigate({
              to: "/clusters/$clusterId/topics/$topic",
              params: { clusterId, topic },
            })
          }
        />
      </SidePanel>
    </>
  );
}

interface PartProps {
  clusterId: string;
  refused: string | undefined;
}

/** The deleted topics that can be restored. It is empty where there are none. */
function Deleted({ clusterId, refused }: PartProps): ReactElement | null {
  const list = useQuery(deletedTopicsQuery(clusterId));
  if (!list.error && !list.data?.length) return null;
  return (
    <Section
      title="Deleted topics"
      lead="Each can be restored until its purge. It costs nothing, unless it was restored before."
    >
      <Listed query={list} what="The deleted topics could not be read" empty={null}>
        {(rows) => <DeletedTopicTable clusterId={clusterId} topics={rows} refused={refused} />}
      </Listed>
    </Section>
  );
}

/** The orphaned topics. It is empty where there are none. */
function Orphaned({ clusterId, refused }: PartProps): ReactElement | null {
  const query = useQuery(orphanedTopicsQuery(clusterId));
  const { data, error } = query;
  if (error && !data) {
    const what = "Whether there are orphaned topics could not be read";
    return <Answered queries={[query]} what={what} children={null} />;
  }
  if (!data?.length) return null;
  return (
    <Section title="Orphaned topics on storage">
      <div style={{ marginBottom: 10 }}>
        <Note tone="waking">
          <strong>Nothing of them is lost.</strong> They are on this cluster&apos;s storage, but the
          cluster does not know them: most likely its metadata was restored from a backup that is
          older than they are.
          <NoteMore>They are kept untouched until somebody attaches them.</NoteMore>
        </Note>
      </div>
      <OrphanedTopicTable clusterId={clusterId} topics={data} refused={refused} />
    </Section>
  );
}
