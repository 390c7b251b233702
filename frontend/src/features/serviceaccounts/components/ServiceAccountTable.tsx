import { Link } from "@tanstack/react-router";
import { type ReactElement, useMemo, useState } from "react";
import { ConfirmRow } from "@/components/ConfirmRow";
import { type Column, DataTable } from "@/components/DataTable";
import { RowButton } from "@/components/GuardedButton";
import { Moment } from "@/components/Moment";
import { StateMark } from "@/components/StateMark";
import type { ServiceAccount } from "@/lib/api/types";
import { useRefusal } from "@/lib/permissions";
import { roleLabel } from "@/lib/roles";
import { useDeleteServiceAccount } from "../api/serviceAccounts";

interface Props {
  accounts: readonly ServiceAccount[] | undefined;
}

/** Accounts of programs; each opens at the side. */
export function ServiceAccountTable({ accounts }: Props): ReactElement {
  const [asked, setAsked] = useState<ServiceAccount>();
  const remove = useDeleteServiceAccount();
  const refused = useRefusal("manage");
  const columns = useMemo(() => columnsOf(setAsked, refused), [refused]);
  return (
    <>
      <DataTable
        label="Service accounts"
        columns={columns}
        rows={accounts}
        rowId={(account) => account.id}
        initialSort={[{ id: "name", desc: false }]}
      />
      <ConfirmRow
        row={asked}
        onClose={() => {
          setAsked(undefined);
        }}
        mutation={remove}
        name={(account) => account.name}
        title="Delete the service account"
        done="is deleted"
      >
        All of its keys are refused within seconds, on open connections too. What it made stays.
        This cannot be undone; to stop it for a while, disable it.
      </ConfirmRow>
    </>
  );
}

function columnsOf(
  onRemove: (account: ServiceAccount) => void,
  refused: string | undefined,
): Column<ServiceAccount>[] {
  return [
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
    {
      id: "delete",
      header: "",
      align: "right",
      width: 90,
      cell: (account) => (
        <RowButton
          refused={refused}
          aria-label={`Delete ${account.name}`}
          onClick={() => {
            onRemove(account);
          }}
        >
          Delete
        </RowButton>
      ),
    },
  ];
}
