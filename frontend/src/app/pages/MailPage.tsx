import { Skeleton } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { type ReactElement, useEffect, useRef } from "react";
import { Empty } from "@/components/Empty";
import { ErrorPanel } from "@/components/ErrorPanel";
import { PageHead } from "@/components/PageHead";
import { localMailQuery, useOpenMail } from "@/features/mail/api/mail";
import { MailList } from "@/features/mail/components/MailList";
import { useLinkToken } from "./useLinkToken";

/** The mails of local mode. The link that the service's start printed opens them. */
export function MailPage(): ReactElement {
  const { data, error, refetch, isPending } = useQuery(localMailQuery);
  const opened = useShownToken();
  return (
    <>
      <PageHead
        title="Local mail"
        lead="This service sends no mail: what it would send is kept in its home folder."
      />
      {opened && <ErrorPanel error={opened} what="The mails were not opened" />}
      {error && !data && (
        <ErrorPanel
          error={error}
          what="The mails could not be read"
          onRetry={() => void refetch()}
        />
      )}
      {isPending && <Skeleton height={280} />}
      {data === "locked" && (
        <Empty title="For who started the service">
          Open the link that <code>make up</code> printed behind &ldquo;Mail&rdquo;. This browser
          may read the mails from then on.
        </Empty>
      )}
      {data && data !== "locked" && data.length > 0 && <MailList mails={data} />}
      {data?.length === 0 && (
        <Empty title="No mail yet">Sign-ups and invitations will appear here.</Empty>
      )}
      {data === null && <Empty title="Mail is really sent">This service has no local mail.</Empty>}
    </>
  );
}

/** Shows the token of the page's address once, and takes it out of the address. */
function useShownToken(): Error | null {
  const token = useLinkToken();
  const navigate = useNavigate();
  const { mutate, error } = useOpenMail();
  const sent = useRef(false);
  useEffect(() => {
    if (!token || sent.current) return;
    sent.current = true; // React may run the effect twice
    mutate(token, { onSettled: () => void navigate({ to: "/mail", replace: true }) });
  }, [token, mutate, navigate]);
  return error;
}
