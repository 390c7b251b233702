import { IconPlus } from "@tabler/icons-react";
import { useQuery } from "@tanstack/react-query";
import { type ReactElement, useMemo } from "react";
import { Empty } from "@/components/Empty";
import { GuardedButton } from "@/components/GuardedButton";
import { Listed } from "@/components/Listed";
import { PageHead } from "@/components/PageHead";
import { SidePanel } from "@/components/SidePanel";
import { apiKeysQuery } from "@/features/apikeys/api/apiKeys";
import { ApiKeyTable } from "@/features/apikeys/components/ApiKeyTable";
import { NewApiKeyPanel } from "@/features/apikeys/components/NewApiKeyPanel";
import { serviceAccountListQuery } from "@/features/serviceaccounts/api/serviceAccounts";
import type { ServiceAccount } from "@/lib/api/types";
import { useRefusal } from "@/lib/permissions";
import { usePanel } from "./usePanel";

const NONE: ServiceAccount[] = [];

/** The API keys of the organization. */
export function ApiKeysPage(): ReactElement {
  const panel = usePanel("new");
  const list = useQuery(apiKeysQuery);
  const refused = useRefusal("manage");
  const accounts = useQuery(serviceAccountListQuery).data ?? NONE;
  const names = useMemo(() => new Map(accounts.map(({ id, name }) => [id, name])), [accounts]);
  const button = (
    <GuardedButton refused={refused} leftSection={<IconPlus size={14} />} onClick={panel.open}>
      New API key
    </GuardedButton>
  );
  return (
    <>
      <PageHead
        title="API keys"
        lead="For programs that manage the organization. Kafka clients use a cluster's credentials."
        actions={button}
      />
      <Listed
        query={list}
        what="The API keys could not be read"
        empty={
          <Empty title="No API key" action={button}>
            With a key a script can do all that this console does.
          </Empty>
        }
      >
        {(rows) => <ApiKeyTable apiKeys={rows} accounts={names} />}
      </Listed>
      <SidePanel
        opened={panel.opened && !refused}
        onClose={panel.close}
        title="New API key"
        size={560}
      >
        <NewApiKeyPanel accounts={accounts} onDone={panel.close} />
      </SidePanel>
    </>
  );
}
