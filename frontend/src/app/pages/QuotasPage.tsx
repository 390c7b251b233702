import { IconPlus } from "@tabler/icons-react";
import { useQuery } from "@tanstack/react-query";
import { type ReactElement, useMemo } from "react";
import { CodeBlock } from "@/components/CodeBlock";
import { Empty } from "@/components/Empty";
import { GuardedButton } from "@/components/GuardedButton";
import { Listed } from "@/components/Listed";
import { Section } from "@/components/Section";
import { SidePanel } from "@/components/SidePanel";
import { credentialsQuery } from "@/features/credentials/api/credentials";
import { quotasQuery } from "@/features/quotas/api/quotas";
import { QuotaForm } from "@/features/quotas/components/QuotaForm";
import { QuotaTable } from "@/features/quotas/components/QuotaTable";
import { entityWords } from "@/features/quotas/entities";
import { useCluster, useClusterId, useClusterRefusal } from "./useCluster";
import { usePanel } from "./usePanel";

/** The command that sets a quota by Kafka's own tool. */
function command(bootstrap: string | undefined): string {
  return [
    `kafka-configs.sh --bootstrap-server ${bootstrap ?? "$BOOTSTRAP"} \\`,
    "  --command-config client.properties --alter \\",
    "  --entity-type clients --entity-name etl --add-config consumer_byte_rate=10485760",
  ].join("\n");
}

/** The quotas of a cluster's clients. */
export function QuotasPage(): ReactElement {
  const clusterId = useClusterId();
  const panel = usePanel("new");
  const quotas = useQuery(quotasQuery(clusterId));
  const credentials = useQuery(credentialsQuery(clusterId)).data;
  const refused = useClusterRefusal();
  const bootstrap = useCluster()?.bootstrap_servers;
  const names = useMemo(
    () => new Map((credentials ?? []).map(({ username, name }) => [username, name])),
    [credentials],
  );
  const edited = quotas.data?.find(({ id }) => id === panel.name);
  const button = (
    <GuardedButton refused={refused} leftSection={<IconPlus size={14} />} onClick={panel.open}>
      New quota
    </GuardedButton>
  );
  return (
    <>
      <Section
        title="Quotas"
        lead="How much clients may do. A client that does more is slowed down, never refused."
        actions={button}
      >
        <Listed
          query={quotas}
          what="The quotas could not be read"
          empty={
            <Empty
              title="No quota"
              action={<CodeBlock title="Or by Kafka's own tool" code={command(bootstrap)} />}
            >
              Every client may do as much as the cluster can. A quota keeps one of them from taking
              all of it: by credential, by client id, by both, or by address. The most specific one
              counts, for all brokers together.
            </Empty>
          }
        >
          {(rows) => (
            <QuotaTable clusterId={clusterId} quotas={rows} names={names} refused={refused} />
          )}
        </Listed>
      </Section>
      <SidePanel opened={panel.opened && !refused} onClose={panel.close} title="New quota">
        <QuotaForm clusterId={clusterId} names={names} onDone={panel.close} />
      </SidePanel>
      <SidePanel
        opened={edited !== undefined}
        onClose={panel.close}
        title={edited ? `Quotas of ${entityWords(edited, names)}` : "Quotas"}
      >
        {edited && (
          <QuotaForm
            key={edited.id}
            clusterId={clusterId}
            quota={edited}
            names={names}
            refused={refused}
            onDone={panel.close}
          />
        )}
      </SidePanel>
    </>
  );
}
