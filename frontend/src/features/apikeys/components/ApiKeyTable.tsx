import { type ReactElement, useMemo, useState } from "react";
import { ConfirmRow } from "@/components/ConfirmRow";
import { type Column, DataTable } from "@/components/DataTable";
import { RowButton } from "@/components/GuardedButton";
import { Moment } from "@/components/Moment";
import { SidePanel } from "@/components/SidePanel";
import type { ApiKey } from "@/lib/api/types";
import { useRefusal } from "@/lib/permissions";
import { roleLabel } from "@/lib/roles";
import { useRevokeApiKey } from "../api/apiKeys";
import { RotateApiKey } from "./RotateApiKey";

interface Props {
  apiKeys: readonly ApiKey[] | undefined;
  /** What service accounts are called, by their id. */
  accounts: ReadonlyMap<string, string>;
}

/** API keys, and the ways to rotate and to revoke one. */
export function ApiKeyTable({ apiKeys, accounts }: Props): ReactElement {
  const [rotated, setRotated] = useState<ApiKey>();
  const [asked, setAsked] = useState<ApiKey>();
  const revoke = useRevokeApiKey();
  const refused = useRefusal("manage");
  const columns = useMemo(
    () => columnsOf(setAsked, setRotated, refused, accounts),
    [refused, accounts],
  );
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
      <SidePanel
        opened={rotated !== undefined}
        onClose={() => {
          setRotated(undefined);
        }}
        title={`Rotate ${rotated?.name ?? "the key"}`}
        size={560}
      >
        {rotated && (
          <RotateApiKey
            apiKey={rotated}
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
  onRevoke: (key: ApiKey) => void,
  onRotate: (key: ApiKey) => void,
  refused: string | undefined,
  accounts: Props["accounts"],
): Column<ApiKey>[] {
  return [
    { id: "name", header: "Name", sortBy: (key) => key.name, cell: (key) => key.name },
    {
      id: "of",
      header: "Of",
      cell: (key) =>
        key.service_account_id === null
          ? "–"
          : (accounts.get(key.service_account_id) ?? "service account"),
    },
    { id: "role", header: "Role", width: 110, cell: (key) => roleLabel(key.role) },
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
      id: "expires",
      header: "Ends",
      width: 110,
      sortBy: (key) => key.expires_at ?? "9",
      cell: (key) => (key.expires_at ? <Moment at={key.expires_at} /> : "never"),
    },
    {
      id: "revoke",
      header: "",
      align: "right",
      width: 150,
      cell: (key) =>
        key.revoked_at ? (
          <span style={{ color: "var(--quiet)" }}>Revoked</span>
        ) : (
          <>
            <RowButton
              refused={refused}
              aria-label={`Rotate ${key.name}`}
              onClick={() => {
                onRotate(key);
              }}
            >
              Rotate
            </RowButton>
            <RowButton
              refused={refused}
              aria-label={`Revoke ${key.name}`}
              onClick={() => {
                onRevoke(key);
              }}
            >
              Revoke
            </RowButton>
          </>
        ),
    },
  ];
}
