import { Button, Skeleton } from "@mantine/core";
import { notifications } from "@mantine/notifications";
import { useQuery } from "@tanstack/react-query";
import type { ReactElement } from "react";
import { Empty } from "@/components/Empty";
import { ErrorPanel } from "@/components/ErrorPanel";
import { Listed } from "@/components/Listed";
import { Section } from "@/components/Section";
import { useEndOtherSessions, userSessionsQuery } from "@/features/session/api/safety";
import { ChangePassword } from "@/features/session/components/ChangePassword";
import { SessionTable } from "@/features/session/components/SessionTable";
import { TwoFactor } from "@/features/session/components/TwoFactor";
import { sessionQuery } from "@/lib/api/session";

/** The person's password, second factor and sessions. */
export function SignInSettingsPage(): ReactElement {
  const { data: session } = useQuery(sessionQuery);
  return (
    <>
      <Section title="Two-factor sign-in">
        {session?.user ? (
          <TwoFactor enabled={session.user.two_factor} verified={session.user.email_verified} />
        ) : (
          <Skeleton height={60} maw={480} />
        )}
      </Section>
      <Sessions />
      <Section title="Password" lead="All other sessions end with a change.">
        <div style={{ maxWidth: 380 }}>
          <ChangePassword />
        </div>
      </Section>
    </>
  );
}

function Sessions(): ReactElement {
  const sessions = useQuery(userSessionsQuery);
  const endOthers = useEndOtherSessions();
  const others = (sessions.data ?? []).some(({ current }) => !current);
  return (
    <Section
      title="Sessions"
      lead="Where you are signed in. End sessions that you do not know, then change the password."
      actions={
        <Button
          variant="default"
          disabled={!others}
          loading={endOthers.isPending}
          onClick={() => {
            endOthers.mutate(undefined, {
              onSuccess: () => {
                notifications.show({ message: "You are signed in here only" });
              },
            });
          }}
        >
          Sign out everywhere else
        </Button>
      }
    >
      {endOthers.error && <ErrorPanel error={endOthers.error} what="The other sessions go on" />}
      <Listed
        query={sessions}
        what="The sessions could not be read"
        empty={<Empty title="No session">Sign in again to see them here.</Empty>}
      >
        {(rows) => <SessionTable sessions={rows} />}
      </Listed>
    </Section>
  );
}
