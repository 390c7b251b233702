import { Button, Loader } from "@mantine/core";
import { Link, useSearch } from "@tanstack/react-router";
import { type ReactElement, useEffect, useRef } from "react";
import { ErrorPanel } from "@/components/ErrorPanel";
import { EntryCard } from "@/features/session/components/EntryCard";
import { useVerifyMail } from "@/features/session/api/session";

export function VerifyPage(): ReactElement {
  const { token } = useSearch({ from: "/verify" });
  const { mutate, isPending, isSuccess, error } = useVerifyMail();
  const sent = useRef(false);
  useEffect(() => {
    if (!token || sent.current) return;
    sent.current = true; // a token works once, and React may run the effect twice
    mutate(token);
  }, [token, mutate]);
  return (
    <EntryCard title="Verify your mail address" lead="This opens public endpoints to your account.">
      {!token && <p>The link is not complete. Open it again from the mail.</p>}
      {isPending && <Loader size="sm" aria-label="Verifying" />}
      {isSuccess && <p>Your address is verified.</p>}
      {error && <ErrorPanel error={error} what="The address was not verified" />}
      <Button mt="md" size="sm" renderRoot={(props) => <Link to="/" {...props} />}>
        Go to the console
      </Button>
    </EntryCard>
  );
}
