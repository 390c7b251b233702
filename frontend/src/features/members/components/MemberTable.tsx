import { Link } from "@tanstack/react-router";
import { type ReactElement, useMemo } from "react";
import type { Column } from "@/components/DataTable";
import { Moment } from "@/components/Moment";
import { RemovableTable } from "@/components/RemovableTable";
import { StateMark } from "@/components/StateMark";
import type { Member } from "@/lib/api/types";
import { useRefusalOver } from "@/lib/permissions";
import { roleLabel } from "@/lib/roles";
import { useRemoveMember } from "../api/members";

interface Props {
  members: readonly Member[] | undefined;
  /** The id of the person at the page, whose own row has no button to remove it. */
  userId: string | undefined;
}

/** The members. A click opens a member's roles in the side panel. */
export function MemberTable({ members, userId }: Props): ReactElement {
  const refusedOver = useRefusalOver();
  const columns = useMemo(() => columnsOf(userId), [userId]);
  return (
    <RemovableTable
      label="Members"
      columns={columns}
      rows={members}
      initialSort={[{ id: "email", desc: false }]}
      removal={{
        mutation: useRemoveMember(),
        name: (member) => member.email,
        label: "Remove",
        title: "Remove the member",
        done: "is removed",
        refused: undefined,
        keptBecause: (member) => refusedOver(member.role),
        effect: ({ email }) =>
          `${email} does not get in any more, and every session here ends within seconds. What ` +
          "they made stays, API keys too: look through those. They can be invited again.",
      }}
    />
  );
}

function columnsOf(userId: string | undefined): Column<Member>[] {
  return [
    {
      id: "email",
      header: "Mail address",
      sortBy: (member) => member.email,
      cell: (member) => (
        <>
          <Link to="/access" search={{ panel: member.id }}>
            {member.email}
          </Link>
          {member.user_id === userId && <span style={{ color: "var(--quiet)" }}> you</span>}
        </>
      ),
    },
    { id: "name", header: "Name", sortBy: (m) => m.name, cell: (member) => member.name || "–" },
    {
      id: "role",
      header: "Role",
      width: 110,
      sortBy: (member) => member.role,
      cell: (member) => roleLabel(member.role),
    },
    {
      id: "factor",
      header: "Two-factor",
      width: 110,
      sortBy: (member) => Number(member.two_factor),
      cell: (member) => (
        <StateMark tone={member.two_factor ? "running" : "quiet"}>
          {member.two_factor ? "On" : "Off"}
        </StateMark>
      ),
    },
    {
      id: "seen",
      header: "Last seen",
      width: 110,
      sortBy: (member) => member.last_seen_at ?? "",
      cell: (member) => (member.last_seen_at ? <Moment at={member.last_seen_at} /> : "never"),
    },
  ];
}
