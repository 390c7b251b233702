import { Button } from "@mantine/core";
import type { ReactElement } from "react";
import { ErrorPanel } from "@/components/ErrorPanel";
import { Note } from "@/components/Note";
import { useSignInLink } from "../api/session";

/** Offers a person who has to wait because of wrong passwords a mail with a way around it. */
export function SignInLink({ email }: { email: string }): ReactElement {
  const request = useSignInLink();
  if (request.isSuccess) {
    return (
      <Note tone="running">
        <strong>Look into your mail.</strong> If {email} has an account, a link is on its way. Open
        it in this browser, and sign in there.
      </Note>
    );
  }
  return (
    <>
      {request.error && <ErrorPanel error={request.error} what="No mail was sent" />}
      <Button
        variant="default"
        loading={request.isPending}
        onClick={() => {
          request.mutate(email);
        }}
      >
        Send me a link to sign in without a wait
      </Button>
    </>
  );
}
