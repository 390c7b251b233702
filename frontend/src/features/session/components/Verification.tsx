import { Button, Group } from "@mantine/core";
import { notifications } from "@mantine/notifications";
import type { ReactElement } from "react";
import { ErrorPanel } from "@/components/ErrorPanel";
import type { Session } from "@/lib/api/types";
import { useRequestVerification } from "../api/session";

/** Shows whether the address is verified, with a button that sends the mail again. */
export function Verification({ user }: { user: NonNullable<Session["user"]> }): ReactElement {
  const request = useRequestVerification();
  if (user.email_verified) return <span>yes</span>;
  return (
    <>
      <Group gap="sm">
        <span>not yet: open the link in the mail</span>
        <Button
          variant="default"
          size="compact-xs"
          loading={request.isPending}
          onClick={() => {
            const onSuccess = (): void => {
              notifications.show({ message: `A mail is on its way to ${user.email}` });
            };
            request.mutate(user.email, { onSuccess });
          }}
        >
          Send it again
        </Button>
      </Group>
      {request.error && <ErrorPanel error={request.error} what="The mail was not sent" />}
    </>
  );
}
