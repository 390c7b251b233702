import { Button } from "@mantine/core";
import { IconPlus } from "@tabler/icons-react";
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import type { ReactElement } from "react";
import { Empty } from "@/components/Empty";
import { ErrorPanel } from "@/components/ErrorPanel";
import { Section } from "@/components/Section";
import { SidePanel } from "@/components/SidePanel";
import { credentialsQuery } from "@/features/credentials/api/credentials";
import { CredentialTable } from "@/features/credentials/components/CredentialTable";
import { NewCredentialPanel } from "@/features/credentials/components/NewCredentialPanel";
import { useClusterId } from "./useCluster";
import { usePanel } from "./usePanel";

export function CredentialsPage(): ReactElement {
  const clusterId = useClusterId();
  const panel = usePanel("new");
  const { data, error, refetch } = useQuery(credentialsQuery(clusterId));
  const button = (
    <Button leftSection={<IconPlus size={14} />} onClick={panel.open}>
      New credential
    </Button>
  );
  return (
    <>
      <Section
        title="Credentials"
        lead="User names and passwords for Kafka clients of this cluster."
        actions={button}
      >
        {error && !data && (
          <ErrorPanel
            error={error}
            what="The credentials could not be read"
            onRetry={() => void refetch()}
          />
        )}
        {data?.length === 0 ? (
          <Empty title="No credential yet" action={button}>
            Clients sign in with a credential. Make one for each application, so that one can be
            taken away without the others.
          </Empty>
        ) : (
          (data ?? !error) && <CredentialTable clusterId={clusterId} credentials={data} />
        )}
      </Section>
      <SidePanel opened={panel.opened} onClose={panel.close} title="New credential">
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
