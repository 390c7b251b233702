import { type ReactElement, useMemo, useState } from "react";
import { ConfirmRow } from "@/components/ConfirmRow";
import { type Column, DataTable } from "@/components/DataTable";
import { RowButton } from "@/components/GuardedButton";
import { Moment } from "@/components/Moment";
import type { ApiKey } from "@/lib/api/types";
import { useRefusal } from "@/lib/permissions";
import { useRevokeApiKey } from "../api/apiKeys";

/** API keys, and the way to revoke one. */
export function ApiKeyTable({ apiKeys }: { apiKeys: readonly ApiKey[] | undefined }): ReactElement {
  const [asked, setAsked] = useState<ApiKey>();
  const revoke = useRevokeApiKey();
  const refused = useRefusal("manage");
  const columns = useMemo(() => columnsOf(setAsked, refused), [refused]);
  return (
    <>
      <DataTable
        label="API keys"
        columns={columns}
        rows={apiKeys}
        rowId={(key) => key.id}
        initialSort={[{ id: "name", desc: false }]}
      />
      <ConfirmRow
        row={asked}
        onClose={() => {
          setAsked(undefined);
        }}
        mutation={revoke}
        name={(key) => key.name}
        title="Revoke the API key"
        action="Revoke the key"
        done="is revoked"
      >
        The next request with this key is refused. This cannot be undone; make a new key instead.
      </ConfirmRow>
    </>
  );
}

const ROLE_WORDS: Record<string, string> = {
  owner: "Owner",
  admin: "Admin",
  developer: "Developer",
  billing: "Billing",
  viewer: "Viewer",
};

function columnsOf(onRevoke: (key: ApiKey) => void, refused: string | undefined): Column<ApiKey>[] {
  return [
    { id: "name", header: "Name", sortBy: (key) => key.name, cell: (key) => key.name },
    {
      id: "id",
      header: "Id",
      cell: (key) => (
        <code style={{ fontFamily: "var(--mantine-font-family-monospace)" }}>{key.id}</code>
      ),
    },
    { id: "role", header: "Role", width: 110, cell: (key) => ROLE_WORDS[key.role] ?? key.role },
    {
      id: "created",
      header: "Created",
      width: 110,
      sortBy: (key) => key.created_at,
      cell: (key) => <Moment at={key.created_at} />,
    },
    {
      id: "used",
      header: "Last used",
      width: 110,
      cell: (key) => (key.last_used_at ? <Moment at={key.last_used_at} /> : "never"),
    },
    {
      id: "revoke",
      header: "",
      align: "right",
      width: 100,
      cell: (key) =>
        key.revoked_at ? (
          <span style={{ color: "var(--quiet)" }}>Revoked</span>
        ) : (
          <RowButton
            refused={refused}
            aria-label={`Revoke ${key.name}`}
            onClick={() => {
              onRevoke(key);
            }}
          >
            Revoke
          </RowButton>
        ),
    },
  ];
}
