import { Button, Loader } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { type ReactElement, useState } from "react";
import { Note } from "@/components/Note";
import { AcceptForm } from "@/features/members/components/AcceptForm";
import { EntryCard } from "@/features/session/components/EntryCard";
import { sessionQuery } from "@/lib/api/session";
import type { Accepted } from "@/lib/api/types";
import { useLinkToken } from "./useLinkToken";

/** The page that the link in an invitation's mail opens. */
export function InvitationPage(): ReactElement {
  const token = useLinkToken();
  const { data: session, isPending } = useQuery(sessionQuery);
  const [accepted, setAccepted] = useState<Accepted>();
  const email = session?.user?.email;
  return (
    <EntryCard
      title="You are invited"
      lead="Join an organization on Freshet."
      foot={
        !accepted &&
        (email === undefined ? (
          <>
            Have an account?{" "}
            <Link to="/signin" search={{ next: `/invitation#${token}` }}>
              Sign in, then join
            </Link>
          </>
        ) : (
          <>You are signed in as {email}.</>
        ))
      }
    >
      {token === "" && (
        <Note tone="failed">The link is not complete. Open it again from the mail.</Note>
      )}
      {token !== "" && isPending && <Loader size="sm" aria-label="Reading" />}
      {token !== "" && !isPending && !accepted && (
        <AcceptForm token={token} email={email} onDone={setAccepted} />
      )}
      {accepted && <Joined accepted={accepted} signedIn={email !== undefined} />}
    </EntryCard>
  );
}

function Joined({ accepted, signedIn }: { accepted: Accepted; signedIn: boolean }): ReactElement {
  const { organization, member } = accepted;
  return (
    <>
      <Note tone="running">
        You belong to {organization.name} now
        {!signedIn && <>. Sign in as {member.email} with the password that you just chose</>}.
      </Note>
      {signedIn ? (
        // The console is loaded anew, since its data belongs to the former organization.
        <Button mt="md" size="sm" component="a" href="/">
          Go to the console
        </Button>
      ) : (
        <Button mt="md" size="sm" renderRoot={(props) => <Link to="/signin" {...props} />}>
          Sign in
        </Button>
      )}
    </>
  );
}
