import { Link } from "@tanstack/react-router";
import type { ReactElement } from "react";
import type { Column } from "@/components/DataTable";
import { Moment } from "@/components/Moment";
import { RemovableTable } from "@/components/RemovableTable";
import { StateMark } from "@/components/StateMark";
import type { ServiceAccount } from "@/lib/api/types";
import { useRefusalOver } from "@/lib/permissions";
import { roleLabel } from "@/lib/roles";
import { useDeleteServiceAccount } from "../api/serviceAccounts";

interface Props {
  accounts: readonly ServiceAccount[] | undefined;
}

/** The service accounts. A click opens an account in the side panel. */
export function ServiceAccountTable({ accounts }: Props): ReactElement {
  const refusedOver = useRefusalOver();
  return (
    <RemovableTable
      label="Service accounts"
      columns={COLUMNS}
      rows={accounts}
      removal={{
        mutation: useDeleteServiceAccount(),
        name: (account) => account.name,
        label: "Delete",
        title: "Delete the service account",
        done: "is deleted",
        refused: undefined,
        keptBecause: (account) => refusedOver(account.role),
        effect: () =>
          "All of its keys are refused within seconds, on open connections too. What it made " +
          "stays. This cannot be undone; to stop it for a while, disable it.",
      }}
    />
  );
}

const COLUMNS: Column<ServiceAccount>[] = [
  {
    id: "name",
    header: "Name",
    sortBy: (account) => account.name,
    cell: (account) => (
      <Link to="/access/service-accounts" search={{ panel: account.id }}>
        {account.name}
      </Link>
    ),
  },
  { id: "description", header: "Description", cell: (account) => account.description || "–" },
  {
    id: "state",
    header: "State",
    width: 110,
    sortBy: (account) => Number(account.disabled),
    cell: (account) => (
      <StateMark tone={account.disabled ? "suspended" : "running"}>
        {account.disabled ? "Disabled" : "Active"}
      </StateMark>
    ),
  },
  { id: "role", header: "Role", width: 110, cell: (account) => roleLabel(account.role) },
  {
    id: "created",
    header: "Created",
    width: 110,
    sortBy: (account) => account.created_at,
    cell: (account) => <Moment at={account.created_at} />,
  },
];
