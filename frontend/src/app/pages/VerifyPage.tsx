import { Button, Loader } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { Link, useSearch } from "@tanstack/react-router";
import { type ReactElement, useEffect, useRef } from "react";
import { ErrorPanel } from "@/components/ErrorPanel";
import { Note } from "@/components/Note";
import { EntryCard } from "@/features/session/components/EntryCard";
import { ProofForm } from "@/features/session/components/ProofForm";
import { useVerifyMail } from "@/features/session/api/session";
import { isCode } from "@/lib/api/client";
import { sessionQuery } from "@/lib/api/session";

/** The page that the link in the mail of a sign-up opens. */
export function VerifyPage(): ReactElement {
  const { token } = useSearch({ from: "/verify" });
  const { isPending: reading } = useQuery(sessionQuery);
  const { mutate, isPending, isSuccess, error } = useVerifyMail();
  const sent = useRef(false);
  useEffect(() => {
    // The session shows who signed up, and has the CSRF token that the request needs.
    if (!token || reading || sent.current) return;
    sent.current = true; // React may run the effect twice
    mutate({ token });
  }, [token, reading, mutate]);
  const asksPassword = isCode(error, "sign_up_not_shown");
  return (
    <EntryCard
      title="Verify your mail address"
      lead="This opens public endpoints to your account."
      foot={
        asksPassword && (
          <>
            Did you not sign up, or is the password lost? <Link to="/forgotten">Set a new one</Link>
            : that ends all sessions, API keys, Kafka credentials and invitations that were made
            with this address.
          </>
        )
      }
    >
      {!token && <p>The link is not complete. Open it again from the mail.</p>}
      {(isPending || (token && reading)) && <Loader size="sm" aria-label="Verifying" />}
      {isSuccess && <Verified />}
      {asksPassword && token && <ProofForm token={token} done={<Verified />} />}
      {error && !asksPassword && <ErrorPanel error={error} what="The address was not verified" />}
      {!asksPassword && (
        <Button mt="md" size="sm" renderRoot={(props) => <Link to="/" {...props} />}>
          Go to the console
        </Button>
      )}
    </EntryCard>
  );
}

function Verified(): ReactElement {
  return <Note tone="running">Your address is verified.</Note>;
}
