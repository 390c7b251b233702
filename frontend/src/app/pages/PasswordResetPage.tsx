import { Button } from "@mantine/core";
import { Link } from "@tanstack/react-router";
import { type ReactElement, useState } from "react";
import { Note } from "@/components/Note";
import { EntryCard } from "@/features/session/components/EntryCard";
import { NewPasswordForm } from "@/features/session/components/NewPasswordForm";
import { useLinkToken } from "./useLinkToken";

/** The page that the link in a mail for a forgotten password opens. */
export function PasswordResetPage(): ReactElement {
  const token = useLinkToken();
  const [set, setSet] = useState(false);
  return (
    <EntryCard
      title="Set another password"
      lead={
        "A new password ends all sessions, wherever you are signed in. If this address was never " +
        "confirmed, it is now, and whatever somebody else could use ends too: API keys, Kafka " +
        "credentials, invitations and other members. Clusters and their records stay."
      }
      foot={<Link to="/forgotten">Ask for another link</Link>}
    >
      {set && (
        <>
          <Note tone="running">The password is set. Sign in with it.</Note>
          <Button mt="md" size="sm" renderRoot={(props) => <Link to="/signin" {...props} />}>
            Sign in
          </Button>
        </>
      )}
      {!set && token !== "" && (
        <NewPasswordForm
          token={token}
          onDone={() => {
            setSet(true);
          }}
        />
      )}
      {!set && token === "" && (
        <Note tone="failed">The link is not complete. Open it again from the mail.</Note>
      )}
    </EntryCard>
  );
}
