import { Skeleton } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import type { ReactElement } from "react";
import { Empty } from "@/components/Empty";
import { ErrorPanel } from "@/components/ErrorPanel";
import { PageHead } from "@/components/PageHead";
import { localMailQuery } from "@/features/mail/api/mail";
import { MailList } from "@/features/mail/components/MailList";

export function MailPage(): ReactElement {
  const { data, error, refetch, isPending } = useQuery(localMailQuery);
  return (
    <>
      <PageHead
        title="Local mail"
        lead="This service sends no mail: what it would send is kept in its home folder."
      />
      {error && !data && (
        <ErrorPanel
          error={error}
          what="The mails could not be read"
          onRetry={() => void refetch()}
        />
      )}
      {isPending && <Skeleton height={280} />}
      {data && data.length > 0 && <MailList mails={data} />}
      {data?.length === 0 && (
        <Empty title="No mail yet">Sign-ups and invitations will appear here.</Empty>
      )}
      {data === null && <Empty title="Mail is really sent">This service has no local mail.</Empty>}
    </>
  );
}
