import { type ReactElement, useMemo, useState } from "react";
import type { Column } from "@/components/DataTable";
import { RowButton } from "@/components/GuardedButton";
import { Moment } from "@/components/Moment";
import { RemovableTable } from "@/components/RemovableTable";
import { SidePanel } from "@/components/SidePanel";
import type { ApiKey } from "@/lib/api/types";
import { useRefusalOver } from "@/lib/permissions";
import { roleLabel } from "@/lib/roles";
import { useRevokeApiKey } from "../api/apiKeys";
import { RotateApiKey } from "./RotateApiKey";

interface Props {
  apiKeys: readonly ApiKey[] | undefined;
  /** The names of service accounts by id. */
  accounts: ReadonlyMap<string, string>;
}

/** The API keys, with buttons to rotate and revoke them. */
export function ApiKeyTable({ apiKeys, accounts }: Props): ReactElement {
  const [rotated, setRotated] = useState<ApiKey>();
  const refusedOver = useRefusalOver();
  const columns = useMemo(() => columnsOf(accounts), [accounts]);
  return (
    <>
      <RemovableTable
        label="API keys"
        columns={columns}
        rows={apiKeys}
        actionsWidth={150}
        over={(key) => (key.revoked_at ? "Revoked" : undefined)}
        actions={(key) => (
          <RowButton
            refused={refusedOver(key.role)}
            aria-label={`Rotate ${key.name}`}
            onClick={() => {
              setRotated(key);
            }}
          >
            Rotate
          </RowButton>
        )}
        removal={{
          mutation: useRevokeApiKey(),
          name: (key) => key.name,
          label: "Revoke",
          title: "Revoke the API key",
          action: "Revoke the key",
          done: "is revoked",
          refused: undefined,
          keptBecause: (key) => refusedOver(key.role),
          effect: () =>
            "The next request with this key is refused. This cannot be undone; " +
            "make a new key instead.",
        }}
      />
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

function columnsOf(accounts: Props["accounts"]): Column<ApiKey>[] {
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
  ];
}
