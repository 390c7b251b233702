import { notifications } from "@mantine/notifications";
import { type ReactElement, useMemo } from "react";
import { type Column, DataTable } from "@/components/DataTable";
import { ErrorPanel } from "@/components/ErrorPanel";
import { RowButton } from "@/components/GuardedButton";
import { Moment } from "@/components/Moment";
import { StateMark } from "@/components/StateMark";
import type { UserSession } from "@/lib/api/types";
import { useEndSession } from "../api/safety";
import { browserWords } from "../browsers";

/** The sessions of the person. Every session but this one can be ended. */
export function SessionTable({
  sessions,
}: {
  sessions: readonly UserSession[] | undefined;
}): ReactElement {
  const end = useEndSession();
  const { mutate } = end;
  const columns = useMemo(
    () =>
      columnsOf((session) => {
        mutate(session, {
          onSuccess: () => {
            notifications.show({ message: `Signed out of ${browserWords(session.user_agent)}` });
          },
        });
      }),
    [mutate],
  );
  return (
    <>
      {end.error && <ErrorPanel error={end.error} what="The session goes on" />}
      <DataTable
        label="Sessions"
        columns={columns}
        rows={sessions}
        rowId={(session) => session.id}
        initialSort={[{ id: "seen", desc: true }]}
      />
    </>
  );
}

function columnsOf(onEnd: (session: UserSession) => void): Column<UserSession>[] {
  return [
    {
      id: "browser",
      header: "Browser",
      cell: (session) => <span title={session.user_agent}>{browserWords(session.user_agent)}</span>,
    },
    { id: "address", header: "Address", cell: (session) => session.address || "–" },
    {
      id: "seen",
      header: "Last seen",
      width: 130,
      sortBy: (session) => session.last_seen_at,
      cell: (session) => <Moment at={session.last_seen_at} />,
    },
    {
      id: "created",
      header: "Signed in",
      width: 130,
      sortBy: (session) => session.created_at,
      cell: (session) => <Moment at={session.created_at} />,
    },
    {
      id: "end",
      header: "",
      align: "right",
      width: 130,
      cell: (session) =>
        session.current ? (
          <StateMark tone="running">This one</StateMark>
        ) : (
          <RowButton
            refused={undefined}
            aria-label={`Sign out of ${browserWords(session.user_agent)}, ${session.address}`}
            onClick={() => {
              onEnd(session);
            }}
          >
            Sign out
          </RowButton>
        ),
    },
  ];
}
