import { IconPlus } from "@tabler/icons-react";
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import type { ReactElement } from "react";
import { Empty } from "@/components/Empty";
import { GuardedButton } from "@/components/GuardedButton";
import { Listed } from "@/components/Listed";
import { Section } from "@/components/Section";
import { SidePanel } from "@/components/SidePanel";
import { credentialsQuery } from "@/features/credentials/api/credentials";
import { CredentialTable } from "@/features/credentials/components/CredentialTable";
import { NewCredentialPanel } from "@/features/credentials/components/NewCredentialPanel";
import { useClusterId, useClusterRefusal } from "./useCluster";
import { usePanel } from "./usePanel";

export function CredentialsPage(): ReactElement {
  const clusterId = useClusterId();
  const panel = usePanel("new");
  const list = useQuery(credentialsQuery(clusterId));
  const refused = useClusterRefusal();
  const button = (
    <GuardedButton refused={refused} leftSection={<IconPlus size={14} />} onClick={panel.open}>
      New credential
    </GuardedButton>
  );
  return (
    <>
      <Section
        title="Credentials"
        lead="User names and passwords for Kafka clients of this cluster."
        actions={button}
      >
        <Listed
          query={list}
          what="The credentials could not be read"
          empty={
            <Empty title="No credential yet" action={button}>
              Clients sign in with a credential. Make one for each application, so that one can be
              removed without the others.
            </Empty>
          }
        >
          {(rows) => <CredentialTable clusterId={clusterId} credentials={rows} refused={refused} />}
        </Listed>
      </Section>
      <SidePanel opened={panel.opened && !refused} onClose={panel.close} title="New credential">
        <NewCredentialPanel
          clusterId={clusterId}
          onDone={panel.close}
          afterwards={
            <Link to="/clusters/$clusterId/connect" params={{ clusterId }}>
              Use it: snippets with this credential filled in
            </Link>
          }
        />
      </SidePanel>
    </>
  );
}
