import { Button } from "@mantine/core";
import { IconPlus } from "@tabler/icons-react";
import { useQuery } from "@tanstack/react-query";
import type { ReactElement } from "react";
import { Empty } from "@/components/Empty";
import { ErrorPanel } from "@/components/ErrorPanel";
import { PageHead } from "@/components/PageHead";
import { SidePanel } from "@/components/SidePanel";
import { apiKeysQuery } from "@/features/apikeys/api/apiKeys";
import { ApiKeyTable } from "@/features/apikeys/components/ApiKeyTable";
import { NewApiKeyPanel } from "@/features/apikeys/components/NewApiKeyPanel";
import { usePanel } from "./usePanel";

export function AccessPage(): ReactElement {
  const panel = usePanel("new");
  const { data, error, refetch } = useQuery(apiKeysQuery);
  const button = (
    <Button leftSection={<IconPlus size={14} />} onClick={panel.open}>
      New API key
    </Button>
  );
  return (
    <>
      <PageHead
        title="API keys"
        lead="For programs that manage the organization. Kafka clients use a cluster's credentials."
        actions={button}
      />
      {error && !data && (
        <ErrorPanel
          error={error}
          what="The API keys could not be read"
          onRetry={() => void refetch()}
        />
      )}
      {data?.length === 0 ? (
        <Empty title="No API key" action={button}>
          With a key a script can do all that this console does.
        </Empty>
      ) : (
        (data ?? !error) && <ApiKeyTable apiKeys={data} />
      )}
      <SidePanel opened={panel.opened} onClose={panel.close} title="New API key" size={560}>
        <NewApiKeyPanel onDone={panel.close} />
      </SidePanel>
    </>
  );
}
