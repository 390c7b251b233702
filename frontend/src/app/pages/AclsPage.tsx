import { Skeleton } from "@mantine/core";
import { IconPlus } from "@tabler/icons-react";
import { useQuery } from "@tanstack/react-query";
import { type ReactElement, useMemo } from "react";
import { Answered } from "@/components/Answered";
import { Empty } from "@/components/Empty";
import { GuardedButton } from "@/components/GuardedButton";
import { Listed } from "@/components/Listed";
import { Section } from "@/components/Section";
import { SidePanel } from "@/components/SidePanel";
import { aclsQuery } from "@/features/acls/api/acls";
import { AclTable } from "@/features/acls/components/AclTable";
import { NewAclForm } from "@/features/acls/components/NewAclForm";
import { credentialsQuery } from "@/features/credentials/api/credentials";
import { topicListQuery } from "@/features/topics/api/topics";
import { useClusterId, useClusterRefusal } from "./useCluster";
import { usePanel } from "./usePanel";

export function AclsPage(): ReactElement {
  const clusterId = useClusterId();
  const panel = usePanel("new");
  const list = useQuery(aclsQuery(clusterId));
  const refused = useClusterRefusal();
  const credentialList = useQuery(credentialsQuery(clusterId));
  const credentials = credentialList.data;
  const topics = useQuery(topicListQuery(clusterId)).data ?? [];
  const names = useMemo(
    () => new Map((credentials ?? []).map(({ principal, name }) => [principal, name])),
    [credentials],
  );
  const button = (
    <GuardedButton refused={refused} leftSection={<IconPlus size={14} />} onClick={panel.open}>
      Add ACLs
    </GuardedButton>
  );
  return (
    <>
      <Section
        title="ACLs"
        lead="What no rule allows is refused; a deny is stronger than any allow."
        actions={button}
      >
        <Listed
          query={list}
          what="The ACLs could not be read"
          empty={
            <Empty title="No ACL yet" action={button}>
              Credentials with a role bring their rules along. For a credential with the role None,
              add here what it may do.
            </Empty>
          }
        >
          {(rows) => <AclTable clusterId={clusterId} acls={rows} names={names} refused={refused} />}
        </Listed>
      </Section>
      <SidePanel opened={panel.opened && !refused} onClose={panel.close} title="Add ACLs">
        <Answered queries={[credentialList]} what="The credentials could not be read">
          {credentials ? (
            <NewAclForm
              clusterId={clusterId}
              names={names}
              topics={topics.map((topic) => topic.name)}
              onDone={panel.close}
            />
          ) : (
            <Skeleton height={320} />
          )}
        </Answered>
      </SidePanel>
    </>
  );
}
