import { notifications } from "@mantine/notifications";
import { type ReactElement, useMemo } from "react";
import { type Column, DataTable } from "@/components/DataTable";
import { ErrorPanel } from "@/components/ErrorPanel";
import { RowButton } from "@/components/GuardedButton";
import { Moment } from "@/components/Moment";
import type { Tone } from "@/components/Note";
import { StateMark } from "@/components/StateMark";
import type { Invitation, Role } from "@/lib/api/types";
import { useRefusalOver } from "@/lib/permissions";
import { roleLabel } from "@/lib/roles";
import { useResendInvitation, useRevokeInvitation } from "../api/members";

const STATES: Record<Invitation["state"], { word: string; tone: Tone }> = {
  pending: { word: "Waiting", tone: "waking" },
  accepted: { word: "Accepted", tone: "running" },
  revoked: { word: "Taken back", tone: "quiet" },
  expired: { word: "Expired", tone: "failed" },
};

interface Props {
  invitations: readonly Invitation[] | undefined;
}

/** The invitations. Pending ones can be sent again or revoked, expired ones sent again. */
export function InvitationTable({ invitations }: Props): ReactElement {
  const resend = useResendInvitation();
  const revoke = useRevokeInvitation();
  const refusedOver = useRefusalOver();
  const { mutate: send } = resend;
  const { mutate: drop } = revoke;
  const columns = useMemo(() => {
    const say = (message: string) => () => {
      notifications.show({ message });
    };
    return columnsOf(
      refusedOver,
      (invitation) => {
        send(invitation, { onSuccess: say(`Sent to ${invitation.email} again`) });
      },
      (invitation) => {
        drop(invitation, { onSuccess: say(`The link of ${invitation.email} has no effect now`) });
      },
    );
  }, [refusedOver, send, drop]);
  return (
    <>
      {resend.error && <ErrorPanel error={resend.error} what="The mail was not sent" />}
      {revoke.error && <ErrorPanel error={revoke.error} what="The invitation still holds" />}
      <DataTable
        label="Invitations"
        columns={columns}
        rows={invitations}
        rowId={(invitation) => invitation.id}
        initialSort={[{ id: "expires", desc: true }]}
      />
    </>
  );
}

function columnsOf(
  refusedOver: (role: Role) => string | undefined,
  onResend: (invitation: Invitation) => void,
  onRevoke: (invitation: Invitation) => void,
): Column<Invitation>[] {
  return [
    { id: "email", header: "Mail address", sortBy: (i) => i.email, cell: (i) => i.email },
    {
      id: "state",
      header: "State",
      width: 120,
      sortBy: (i) => i.state,
      cell: (i) => <StateMark tone={STATES[i.state].tone}>{STATES[i.state].word}</StateMark>,
    },
    { id: "role", header: "Role", width: 110, cell: (i) => roleLabel(i.role) },
    {
      id: "expires",
      header: "Expires",
      width: 110,
      sortBy: (i) => i.expires_at,
      cell: (i) => <Moment at={i.expires_at} />,
    },
    {
      id: "change",
      header: "",
      align: "right",
      width: 190,
      cell: (i) =>
        i.state === "pending" || i.state === "expired" ? (
          <>
            <RowButton
              refused={refusedOver(i.role)}
              aria-label={`Send again to ${i.email}`}
              onClick={() => {
                onResend(i);
              }}
            >
              Send again
            </RowButton>
            {i.state === "pending" && (
              <RowButton
                refused={refusedOver(i.role)}
                aria-label={`Take back from ${i.email}`}
                onClick={() => {
                  onRevoke(i);
                }}
              >
                Take back
              </RowButton>
            )}
          </>
        ) : null,
    },
  ];
}
