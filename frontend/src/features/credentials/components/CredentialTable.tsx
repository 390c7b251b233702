import { type ReactElement, useMemo, useState } from "react";
import { ConfirmRow } from "@/components/ConfirmRow";
import { CopyText } from "@/components/CopyText";
import { type Column, DataTable } from "@/components/DataTable";
import { RowButton } from "@/components/GuardedButton";
import { Moment } from "@/components/Moment";
import { SidePanel } from "@/components/SidePanel";
import type { Credential } from "@/lib/api/types";
import { useDeleteCredential } from "../api/credentials";
import { roleLabel } from "../roles";
import { RotateCredential } from "./RotateCredential";

interface Props {
  clusterId: string;
  credentials: readonly Credential[] | undefined;
  refused: string | undefined;
}

/** Credentials of a cluster, and the way to delete one. */
export function CredentialTable({ clusterId, credentials, refused }: Props): ReactElement {
  const [rotated, setRotated] = useState<Credential>();
  const [asked, setAsked] = useState<Credential>();
  const remove = useDeleteCredential(clusterId);
  const columns = useMemo(() => columnsOf(setAsked, setRotated, refused), [refused]);
  return (
    <>
      <DataTable
        label="Credentials"
        columns={columns}
        rows={credentials}
        rowId={(credential) => credential.id}
        initialSort={[{ id: "name", desc: false }]}
      />
      <ConfirmRow
        row={asked}
        onClose={() => {
          setAsked(undefined);
        }}
        mutation={remove}
        name={(credential) => credential.name}
        title="Delete the credential"
        done="is deleted"
      >
        Clients that use <code>{asked?.username}</code> are disconnected within seconds and cannot
        come back. This cannot be undone; a new credential has another password.
      </ConfirmRow>
      <SidePanel
        opened={rotated !== undefined}
        onClose={() => {
          setRotated(undefined);
        }}
        title={`Rotate ${rotated?.name ?? "the credential"}`}
      >
        {rotated && (
          <RotateCredential
            clusterId={clusterId}
            credential={rotated}
            onDone={() => {
              setRotated(undefined);
            }}
          />
        )}
      </SidePanel>
    </>
  );
}

function columnsOf(
  onDelete: (credential: Credential) => void,
  onRotate: (credential: Credential) => void,
  refused: string | undefined,
): Column<Credential>[] {
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
      id: "expires",
      header: "Ends",
      width: 110,
      sortBy: (row) => row.expires_at ?? "9",
      cell: (row) => (row.expires_at ? <Moment at={row.expires_at} /> : "never"),
    },
    {
      id: "delete",
      header: "",
      align: "right",
      width: 140,
      cell: (row) => (
        <>
          <RowButton
            refused={
              refused ??
              (row.replaced_by ? "It was rotated: a newer one is in its place." : undefined)
            }
            aria-label={`Rotate ${row.name}`}
            onClick={() => {
              onRotate(row);
            }}
          >
            Rotate
          </RowButton>
          <RowButton
            refused={refused}
            aria-label={`Delete ${row.name}`}
            onClick={() => {
              onDelete(row);
            }}
          >
            Delete
          </RowButton>
        </>
      ),
    },
  ];
}
