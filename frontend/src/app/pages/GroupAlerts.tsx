import { IconBell } from "@tabler/icons-react";
import { useQuery } from "@tanstack/react-query";
import type { ReactElement } from "react";
import { Empty } from "@/components/Empty";
import { Listed } from "@/components/Listed";
import { Section } from "@/components/Section";
import { SidePanel } from "@/components/SidePanel";
import { alertListQuery } from "@/features/alerts/api/alerts";
import { AlertTable } from "@/features/alerts/components/AlertTable";
import { alertsOfGroup } from "@/features/alerts/figures";
import { GuardedButton } from "@/components/GuardedButton";
import { NewAlert, useAlertRefusal } from "./AlertPanels";
import { usePanel } from "./usePanel";

interface Props {
  clusterId: string;
  group: string;
}

/** The alerts that watch a group, on the group's page. */
export function GroupAlerts({ clusterId, group }: Props): ReactElement {
  const panel = usePanel("alert");
  const refusal = useAlertRefusal();
  const refused = refusal(clusterId);
  const { data, error, refetch } = useQuery(alertListQuery);
  const own = data && alertsOfGroup(data, clusterId, group);
  return (
    <Section
      title="Alerts"
      actions={
        <GuardedButton
          refused={refused}
          variant="default"
          leftSection={<IconBell size={14} />}
          onClick={panel.open}
        >
          Alert me about its lag
        </GuardedButton>
      }
    >
      <Listed
        query={{ data: own, error, refetch }}
        what="The alerts could not be read"
        empty={
          <Empty title="No alert watches this group">
            With one, members get a mail when the group stays too far behind, and another when it
            has caught up.
          </Empty>
        }
      >
        {(rows) => <AlertTable alerts={rows} refusal={refusal} />}
      </Listed>
      <SidePanel opened={panel.opened && !refused} onClose={panel.close} title="New alert">
        <NewAlert of={{ clusterId, group }} onDone={panel.close} />
      </SidePanel>
    </Section>
  );
}
