import { TextInput } from "@mantine/core";
import { IconSearch } from "@tabler/icons-react";
import { type ReactElement, useMemo } from "react";
import { type Column, DataTable } from "@/components/DataTable";
import { ErrorPanel } from "@/components/ErrorPanel";
import { RowButton } from "@/components/GuardedButton";
import { offerUndo } from "@/components/offerUndo";
import type { Acl, AclDraft } from "@/lib/api/types";
import { useFind } from "@/lib/useView";
import { useCreateAcls, useDeleteAcl } from "../api/acls";
import { aclWords } from "../templates";
import classes from "./AclTable.module.css";

interface Props {
  clusterId: string;
  acls: readonly Acl[] | undefined;
  /** The names of credentials by principal. */
  names: ReadonlyMap<string, string>;
  refused: string | undefined;
}

const FILTER_FROM = 8;

/** A cluster's ACLs. The notice after a deletion has a button that adds the rule again. */
export function AclTable({ clusterId, acls, names, refused }: Props): ReactElement {
  const { typed, type, needle } = useFind();
  const create = useCreateAcls(clusterId);
  const remove = useDeleteAcl(clusterId);
  const { mutate: put } = create;
  const { mutate: drop } = remove;
  const columns = useMemo(
    () =>
      columnsOf(names, refused, (acl) => {
        drop(acl, { onSuccess: () => showUndo(acl, () => put({ items: [draftOf(acl)] })) });
      }),
    [drop, put, names, refused],
  );
  const shown = acls?.filter((acl) =>
    `${names.get(acl.principal) ?? ""} ${acl.principal} ${aclWords(acl)}`
      .toLowerCase()
      .includes(needle),
  );
  return (
    <>
      {(acls?.length ?? 0) >= FILTER_FROM && (
        <TextInput
          mb="sm"
          maw={320}
          size="xs"
          leftSection={<IconSearch size={14} />}
          placeholder="Find by principal, resource or operation"
          aria-label="Find an ACL"
          value={typed}
          onChange={(event) => {
            type(event.currentTarget.value);
          }}
        />
      )}
      {remove.error && <ErrorPanel error={remove.error} what="The rule was not deleted" />}
      {create.error && <ErrorPanel error={create.error} what="The rule was not put back" />}
      <DataTable
        label="ACLs"
        columns={columns}
        rows={shown}
        rowId={(acl) => acl.id}
        initialSort={[{ id: "principal", desc: false }]}
      />
    </>
  );
}

/** Returns the rule without its id, to be made again. The service derives the same id from it. */
function draftOf(acl: Acl): AclDraft {
  const { principal, resource_type, resource_name, pattern_type, operation, permission, host } =
    acl;
  return { principal, resource_type, resource_name, pattern_type, operation, permission, host };
}

function showUndo(acl: Acl, undo: () => void): void {
  offerUndo({
    id: `acl ${acl.id}`,
    title: "The rule is deleted",
    message: `${aclWords(acl)}.`,
    undo,
  });
}

function columnsOf(
  names: Props["names"],
  refused: string | undefined,
  onDelete: (acl: Acl) => void,
): Column<Acl>[] {
  return [
    {
      id: "principal",
      header: "Principal",
      sortBy: (acl) => `${names.get(acl.principal) ?? ""} ${acl.principal}`,
      cell: (acl) => (
        <>
          {names.get(acl.principal)}{" "}
          <code className={classes.principal} title={acl.principal}>
            {acl.principal}
          </code>
        </>
      ),
    },
    {
      id: "permission",
      header: "Permission",
      width: 110,
      cell: (acl) => (
        <span className={acl.permission === "DENY" ? classes.deny : undefined}>
          {acl.permission === "DENY" ? "Deny" : "Allow"}
        </span>
      ),
    },
    {
      id: "operation",
      header: "Operation",
      width: 150,
      sortBy: (acl) => acl.operation,
      cell: (acl) => acl.operation,
    },
    {
      id: "resource",
      header: "Resource",
      sortBy: (acl) => `${acl.resource_type} ${acl.resource_name}`,
      cell: (acl) => (
        <>
          <span className={classes.kind}>
            {acl.resource_type.toLowerCase().replaceAll("_", " ")}
          </span>{" "}
          <code className={classes.mono}>{acl.resource_name}</code>
          {acl.pattern_type === "PREFIXED" && (
            <span className={classes.kind}> and what follows</span>
          )}
        </>
      ),
    },
    {
      id: "delete",
      header: "",
      align: "right",
      width: 90,
      cell: (acl) => (
        <RowButton
          refused={refused}
          aria-label={`Delete: ${aclWords(acl)} for ${acl.principal}`}
          onClick={() => {
            onDelete(acl);
          }}
        >
          Delete
        </RowButton>
      ),
    },
  ];
}
