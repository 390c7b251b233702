import type { ReactElement } from "react";
import { type Column, DataTable } from "@/components/DataTable";
import type { GroupMember } from "@/lib/api/types";
import { assignmentWords } from "../assignments";

interface MemberTableProps {
  members: readonly GroupMember[] | undefined;
}

/** The members of a group, with their partitions. */
export function MemberTable({ members }: MemberTableProps): ReactElement {
  return (
    <DataTable
      label="Members"
      columns={COLUMNS}
      rows={members}
      rowId={(member) => member.member_id}
      initialSort={[{ id: "client", desc: false }]}
    />
  );
}

const COLUMNS: Column<GroupMember>[] = [
  {
    id: "client",
    header: "Client",
    sortBy: (member) => member.client_id,
    cell: (member) => <span title={member.member_id}>{member.client_id || member.member_id}</span>,
  },
  { id: "host", header: "Host", width: 180, cell: (member) => member.host },
  { id: "partitions", header: "Partitions", cell: assignmentWords },
];
