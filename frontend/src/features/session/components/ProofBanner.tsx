import { Button } from "@mantine/core";
import { notifications } from "@mantine/notifications";
import { useQuery } from "@tanstack/react-query";
import type { ReactElement } from "react";
import { ErrorPanel } from "@/components/ErrorPanel";
import { Note } from "@/components/Note";
import { sessionQuery } from "@/lib/api/session";
import { useRequestVerification } from "../api/session";
import classes from "./ProofBanner.module.css";

/**
 * Asks who has not proved their address to do so, above every page, with a button that sends the
 * mail again. It is empty for everybody else.
 */
export function ProofBanner(): ReactElement | null {
  const { data: session } = useQuery(sessionQuery);
  const request = useRequestVerification();
  const user = session?.user;
  if (!user || user.email_verified) return null;
  const send = (): void => {
    request.mutate(user.email, {
      onSuccess: () => {
        notifications.show({ message: `A mail is on its way to ${user.email}` });
      },
    });
  };
  return (
    <section aria-label="Your address" className={classes.root}>
      <Note
        tone="waking"
        action={
          <Button variant="default" size="compact-xs" loading={request.isPending} onClick={send}>
            Send the mail again
          </Button>
        }
      >
        <strong>Prove your address.</strong> Open the link in the mail to {user.email}. A second
        factor waits for it; where the service is public, so do invitations, a card, the trial and
        Kafka clients.
      </Note>
      {request.error && <ErrorPanel error={request.error} what="The mail was not sent" />}
    </section>
  );
}
