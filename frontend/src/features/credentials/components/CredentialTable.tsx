import { type ReactElement, useState } from "react";
import { CopyText } from "@/components/CopyText";
import type { Column } from "@/components/DataTable";
import { RowButton } from "@/components/GuardedButton";
import { Moment } from "@/components/Moment";
import { RemovableTable } from "@/components/RemovableTable";
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

const ROTATED = "It was rotated: a newer one is in its place.";

/** The credentials of a cluster, with buttons to rotate and delete them. */
export function CredentialTable({ clusterId, credentials, refused }: Props): ReactElement {
  const [rotated, setRotated] = useState<Credential>();
  return (
    <>
      <RemovableTable
        label="Credentials"
        columns={COLUMNS}
        rows={credentials}
        actionsWidth={140}
        actions={(row) => (
          <RowButton
            refused={refused ?? (row.replaced_by ? ROTATED : undefined)}
            aria-label={`Rotate ${row.name}`}
            onClick={() => {
              setRotated(row);
            }}
          >
            Rotate
          </RowButton>
        )}
        removal={{
          mutation: useDeleteCredential(clusterId),
          name: (row) => row.name,
          label: "Delete",
          title: "Delete the credential",
          done: "is deleted",
          refused,
          effect: (row) => (
            <>
              Clients that use <code>{row.username}</code> are disconnected within seconds and
              cannot come back. This cannot be undone; a new credential has another password.
            </>
          ),
        }}
      />
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

/** The mechanism that clients are to use, and a word where it is the only one that works. */
function mechanismOf({ mechanism, mechanisms }: Credential): string {
  const [only, other] = mechanisms ?? [];
  return only && !other ? `${only} only. Rotate it: a new one works with both.` : mechanism;
}

const COLUMNS: Column<Credential>[] = [
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
  { id: "mechanism", header: "Mechanism", width: 150, cell: mechanismOf },
  {
    id: "created",
    header: "Created",
    width: 120,
    sortBy: (row) => row.created_at,
    cell: (row) => <Moment at={row.created_at} />,
  },
  {
    id: "used",
    header: "Last used",
    width: 110,
    sortBy: (row) => row.last_used_at ?? "",
    cell: (row) => (row.last_used_at ? <Moment at={row.last_used_at} /> : "never"),
  },
  {
    id: "expires",
    header: "Ends",
    width: 110,
    sortBy: (row) => row.expires_at ?? "9",
    cell: (row) => (row.expires_at ? <Moment at={row.expires_at} /> : "never"),
  },
];
