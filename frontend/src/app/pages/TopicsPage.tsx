import { IconPlus } from "@tabler/icons-react";
import { useQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import type { ReactElement } from "react";
import { CodeBlock } from "@/components/CodeBlock";
import { Empty } from "@/components/Empty";
import { GuardedButton } from "@/components/GuardedButton";
import { Listed } from "@/components/Listed";
import { Section } from "@/components/Section";
import { SidePanel } from "@/components/SidePanel";
import { topicListQuery } from "@/features/topics/api/topics";
import { NewTopicForm } from "@/features/topics/components/NewTopicForm";
import { TopicTable } from "@/features/topics/components/TopicTable";
import { useClusterId, useClusterRefusal } from "./useCluster";
import { usePanel } from "./usePanel";

/** The same by REST: what a script would send. */
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
        lead="Named logs. They can be looked at and made while the cluster sleeps."
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
