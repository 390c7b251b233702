import { IconPlus } from "@tabler/icons-react";
import { useQuery } from "@tanstack/react-query";
import type { ReactElement } from "react";
import { CodeBlock } from "@/components/CodeBlock";
import { Empty } from "@/components/Empty";
import { GuardedButton } from "@/components/GuardedButton";
import { Listed } from "@/components/Listed";
import { PageHead } from "@/components/PageHead";
import { SidePanel } from "@/components/SidePanel";
import { alertListQuery } from "@/features/alerts/api/alerts";
import { AlertTable } from "@/features/alerts/components/AlertTable";
import { useRefusalEverywhere } from "@/lib/permissions";
import { AlertDetails, NewAlert, useAlertRefusal } from "./AlertPanels";
import { useNames } from "./useNames";
import { usePanel } from "./usePanel";

/** The command that makes an alert by REST, for scripts. */
function command(): string {
  return [
    `curl -X POST ${location.origin}/api/v1/alerts \\`,
    `  -H "Authorization: Bearer $FRESHET_API_KEY" -H 'Content-Type: application/json' \\`,
    `  -d '{"cluster_id": "'$CLUSTER_ID'", "name": "Behind", "kind": "group_lag_seconds", ` +
      `"threshold": 60}'`,
  ].join("\n");
}

/** The alerts of all clusters. */
export function AlertsPage(): ReactElement {
  const panel = usePanel("new");
  const refused = useRefusalEverywhere("write");
  const refusal = useAlertRefusal();
  const alerts = useQuery(alertListQuery);
  const { clusters } = useNames();
  const opened = alerts.data?.find(({ id }) => id === panel.name);
  const may = opened !== undefined && refusal(opened.cluster_id) === undefined;
  return (
    <>
      <PageHead
        title="Alerts"
        lead="A mail when a figure of a cluster stays above a threshold, and one when it is over."
        actions={
          <GuardedButton
            refused={refused}
            leftSection={<IconPlus size={14} />}
            onClick={panel.open}
          >
            New alert
          </GuardedButton>
        }
      />
      <Listed
        query={alerts}
        what="The alerts could not be read"
        empty={
          <Empty title="No alert" action={<CodeBlock title="Or by REST" code={command()} />}>
            An alert watches the lag of consumer groups, what a cluster stores and how fast that
            grows, or its connections. Begin with the lag of whichever group is furthest behind.
            They are checked once a minute, which wakes no cluster and costs nothing.
          </Empty>
        }
      >
        {(rows) => <AlertTable alerts={rows} clusters={clusters} refusal={refusal} />}
      </Listed>
      <SidePanel opened={panel.opened && !refused} onClose={panel.close} title="New alert">
        <NewAlert onDone={panel.close} />
      </SidePanel>
      <SidePanel
        opened={opened !== undefined}
        onClose={panel.close}
        title={`${may ? "Edit " : ""}${opened?.name ?? "the alert"}`}
      >
        {opened && (
          <AlertDetails alert={opened} refused={refusal(opened.cluster_id)} onDone={panel.close} />
        )}
      </SidePanel>
    </>
  );
}
