import { Button } from "@mantine/core";
import { notifications } from "@mantine/notifications";
import { type ReactElement, useMemo, useState } from "react";
import { ConfirmByName } from "@/components/ConfirmByName";
import { CopyText } from "@/components/CopyText";
import { type Column, DataTable } from "@/components/DataTable";
import { Moment } from "@/components/Moment";
import type { Credential } from "@/lib/api/types";
import { useDeleteCredential } from "../api/credentials";
import { roleLabel } from "../roles";

interface Props {
  clusterId: string;
  credentials: readonly Credential[] | undefined;
}

/** Credentials of a cluster, and the way to delete one. */
export function CredentialTable({ clusterId, credentials }: Props): ReactElement {
  const [asked, setAsked] = useState<Credential>();
  const remove = useDeleteCredential(clusterId);
  const columns = useMemo(() => columnsOf(setAsked), []);
  const close = (): void => {
    setAsked(undefined);
    remove.reset();
  };
  return (
    <>
      <DataTable
        label="Credentials"
        columns={columns}
        rows={credentials}
        rowId={(credential) => credential.id}
        initialSort={[{ id: "name", desc: false }]}
      />
      <ConfirmByName
        opened={asked !== undefined}
        onClose={close}
        name={asked?.name ?? ""}
        title="Delete the credential"
        action="Delete the credential"
        pending={remove.isPending}
        error={remove.error}
        onConfirm={() => {
          if (!asked) return;
          const onSuccess = (): void => {
            notifications.show({ message: `${asked.name} is deleted` });
            close();
          };
          remove.mutate(asked, { onSuccess });
        }}
      >
        Clients that use <code>{asked?.username}</code> are disconnected within seconds and cannot
        come back. This cannot be undone; a new credential has another password.
      </ConfirmByName>
    </>
  );
}

function columnsOf(onDelete: (credential: Credential) => void): Column<Credential>[] {
  return [
    { id: "name", header: "Name", sortBy: (row) => row.name, cell: (row) => row.name },
    {
      id: "username",
      header: "User name",
      cell: (row) => <CopyText value={row.username} what="the user name" />,
    },
    {
      id: "role",
      header: "Role",
      width: 110,
      sortBy: (row) => row.role,
      cell: (row) => roleLabel(row.role),
    },
    { id: "mechanism", header: "Mechanism", width: 150, cell: (row) => row.mechanism },
    {
      id: "created",
      header: "Created",
      width: 120,
      sortBy: (row) => row.created_at,
      cell: (row) => <Moment at={row.created_at} />,
    },
    {
      id: "delete",
      header: "",
      align: "right",
      width: 90,
      cell: (row) => (
        <Button
          variant="subtle"
          color="gray"
          size="compact-xs"
          aria-label={`Delete ${row.name}`}
          onClick={() => {
            onDelete(row);
          }}
        >
          Delete
        </Button>
      ),
    },
  ];
}
