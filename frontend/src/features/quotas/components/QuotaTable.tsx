import { Button } from "@mantine/core";
import { Link } from "@tanstack/react-router";
import { type ReactElement, type ReactNode, useMemo } from "react";
import { type Column, DataTable } from "@/components/DataTable";
import { ErrorPanel } from "@/components/ErrorPanel";
import { RowButton } from "@/components/GuardedButton";
import { offerUndo } from "@/components/offerUndo";
import type { ClientQuota } from "@/lib/api/types";
import { formatCount } from "@/lib/format/bytes";
import { formatDecimal } from "@/lib/format/meters";
import { useRemoveQuota, useSetQuota } from "../api/quotas";
import { entityWords, type Names, valuesOf } from "../entities";
import { exactRate, formatRate } from "../rates";
import classes from "./QuotaTable.module.css";

interface Props {
  clusterId: string;
  quotas: readonly ClientQuota[] | undefined;
  names: Names;
  refused: string | undefined;
}

/** The quotas, with buttons to change and remove them. Removed quotas can be put back. */
export function QuotaTable({ clusterId, quotas, names, refused }: Props): ReactElement {
  const set = useSetQuota(clusterId);
  const remove = useRemoveQuota(clusterId);
  const { mutate: put } = set;
  const { mutate: drop } = remove;
  const columns = useMemo(() => {
    const undoOf = (quota: ClientQuota) => () => {
      offerUndo({
        id: quota.id,
        title: "The quotas are removed",
        message: `Nothing limits ${entityWords(quota, names)} here now.`,
        undo: () => {
          put(valuesOf(quota));
        },
      });
    };
    return columnsOf(clusterId, names, refused, (quota) => {
      drop(quota, { onSuccess: undoOf(quota) });
    });
  }, [clusterId, names, refused, put, drop]);
  return (
    <>
      {remove.error && <ErrorPanel error={remove.error} what="The quotas were not removed" />}
      {set.error && <ErrorPanel error={set.error} what="The quotas were not put back" />}
      <DataTable
        label="Quotas"
        columns={columns}
        rows={quotas}
        rowId={(quota) => quota.id}
        initialSort={[{ id: "whom", desc: false }]}
      />
    </>
  );
}

function EntityName({ quota, names }: { quota: ClientQuota; names: Names }): ReactElement {
  const { user, client_id, ip } = quota;
  return (
    <>
      {user !== null && <Named what="credential" name={user} known={names.get(user)} />}
      {user !== null && client_id !== null && <span className={classes.quiet}>, </span>}
      {client_id !== null && <Named what="client id" name={client_id} />}
      {ip !== null && <Named what="address" name={ip} />}
    </>
  );
}

interface NamedProps {
  what: string;
  name: string;
  /** The name of the credential, where the user name is only an id. */
  known?: string;
}

function Named({ what, name, known }: NamedProps): ReactElement {
  if (name === "") return <span>every other {what}</span>;
  if (known !== undefined) return <span title={name}>{known}</span>;
  return (
    <>
      <span className={classes.quiet}>{what} </span>
      <code className={classes.mono}>{name}</code>
    </>
  );
}

function rate(bytes: number | null): ReactNode {
  return bytes === null ? "–" : <span title={exactRate(bytes)}>{formatRate(bytes)}</span>;
}

function columnsOf(
  clusterId: string,
  names: Names,
  refused: string | undefined,
  onRemove: (quota: ClientQuota) => void,
): Column<ClientQuota>[] {
  return [
    {
      id: "whom",
      header: "Applies to",
      sortBy: (quota) => entityWords(quota, names),
      cell: (quota) => <EntityName quota={quota} names={names} />,
    },
    {
      id: "produce",
      header: "Produce",
      align: "right",
      width: 110,
      sortBy: (quota) => quota.produce_bytes_per_second ?? Number.POSITIVE_INFINITY,
      cell: (quota) => rate(quota.produce_bytes_per_second),
    },
    {
      id: "fetch",
      header: "Fetch",
      align: "right",
      width: 110,
      sortBy: (quota) => quota.fetch_bytes_per_second ?? Number.POSITIVE_INFINITY,
      cell: (quota) => rate(quota.fetch_bytes_per_second),
    },
    {
      id: "request",
      header: "Request time",
      align: "right",
      width: 120,
      cell: ({ request_percentage: share }) =>
        share === null ? "–" : <span title="Of one thread">{formatDecimal(share)} %</span>,
    },
    {
      id: "connections",
      header: "Connections",
      align: "right",
      width: 110,
      cell: ({ connections }) => (connections === null ? "–" : formatCount(connections)),
    },
    {
      id: "attempts",
      header: "New connections",
      align: "right",
      width: 130,
      cell: ({ connections_per_second: attempts }) =>
        attempts === null ? "–" : `${formatDecimal(attempts)} / s`,
    },
    {
      id: "actions",
      header: "",
      align: "right",
      width: 140,
      cell: (quota) => (
        <Actions
          clusterId={clusterId}
          quota={quota}
          whom={entityWords(quota, names)}
          refused={refused}
          onRemove={onRemove}
        />
      ),
    },
  ];
}

interface ActionsProps {
  clusterId: string;
  quota: ClientQuota;
  whom: string;
  refused: string | undefined;
  onRemove: (quota: ClientQuota) => void;
}

function Actions({ clusterId, quota, whom, refused, onRemove }: ActionsProps): ReactElement {
  const verb = refused ? "Look at" : "Edit";
  return (
    <>
      <Button
        variant="subtle"
        color="gray"
        size="compact-xs"
        aria-label={`${verb} the quotas of ${whom}`}
        renderRoot={(props) => (
          <Link
            to="/clusters/$clusterId/quotas"
            params={{ clusterId }}
            search={{ panel: quota.id }}
            {...props}
          />
        )}
      >
        {verb}
      </Button>
      <RowButton
        refused={refused}
        aria-label={`Remove the quotas of ${whom}`}
        onClick={() => {
          onRemove(quota);
        }}
      >
        Remove
      </RowButton>
    </>
  );
}
