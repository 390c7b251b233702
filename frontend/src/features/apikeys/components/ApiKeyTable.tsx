import { Button } from "@mantine/core";
import { notifications } from "@mantine/notifications";
import { type ReactElement, useMemo, useState } from "react";
import { ConfirmByName } from "@/components/ConfirmByName";
import { type Column, DataTable } from "@/components/DataTable";
import { Moment } from "@/components/Moment";
import type { ApiKey } from "@/lib/api/types";
import { useRevokeApiKey } from "../api/apiKeys";

/** API keys, and the way to revoke one. */
export function ApiKeyTable({ apiKeys }: { apiKeys: readonly ApiKey[] | undefined }): ReactElement {
  const [asked, setAsked] = useState<ApiKey>();
  const revoke = useRevokeApiKey();
  const columns = useMemo(() => columnsOf(setAsked), []);
  const close = (): void => {
    setAsked(undefined);
    revoke.reset();
  };
  return (
    <>
      <DataTable
        label="API keys"
        columns={columns}
        rows={apiKeys}
        rowId={(key) => key.id}
        initialSort={[{ id: "name", desc: false }]}
      />
      <ConfirmByName
        opened={asked !== undefined}
        onClose={close}
        name={asked?.name ?? ""}
        title="Revoke the API key"
        action="Revoke the key"
        pending={revoke.isPending}
        error={revoke.error}
        onConfirm={() => {
          if (!asked) return;
          const onSuccess = (): void => {
            notifications.show({ message: `${asked.name} is revoked` });
            close();
          };
          revoke.mutate(asked.id, { onSuccess });
        }}
      >
        The next request with this key is refused. This cannot be undone; make a new key instead.
      </ConfirmByName>
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

function columnsOf(onRevoke: (key: ApiKey) => void): Column<ApiKey>[] {
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
          <Button
            variant="subtle"
            color="gray"
            size="compact-xs"
            aria-label={`Revoke ${key.name}`}
            onClick={() => {
              onRevoke(key);
            }}
          >
            Revoke
          </Button>
        ),
    },
  ];
}
