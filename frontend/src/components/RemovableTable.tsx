import type { SortingState } from "@tanstack/react-table";
import type { UseMutationResult } from "@tanstack/react-query";
import { type ReactElement, type ReactNode, useMemo, useState } from "react";
import { ConfirmRow } from "./ConfirmRow";
import { type Column, DataTable } from "./DataTable";
import { RowButton } from "./GuardedButton";

/** How a row is deleted. */
interface Removal<Row> {
  mutation: UseMutationResult<unknown, Error, Row>;
  /** Gives the row's name, which the person must type. */
  name: (row: Row) => string;
  /** The text of the button at the end of the row, such as "Delete". */
  label: string;
  /** The title of the dialog, such as "Delete the credential". */
  title: string;
  /** The text of the dialog's button; by default the title. */
  action?: string;
  /** The words after the name in the notice of success, such as "is deleted". */
  done: string;
  /** Why the person may not delete rows; undefined where they may. */
  refused: string | undefined;
  /** Gives why nobody can delete this row; undefined where it can be deleted. */
  keptBecause?: (row: Row) => string | undefined;
  /** Gives what is deleted, what stays, and whether and how it can be undone. */
  effect: (row: Row) => ReactNode;
}

interface Props<Row> {
  /** The label for screen readers, such as "Credentials". */
  label: string;
  columns: Column<Row>[];
  /** Undefined while they load: the table then shows a skeleton of its own shape. */
  rows: readonly Row[] | undefined;
  removal: Removal<Row>;
  initialSort?: SortingState;
  /** Gives further buttons of a row, before the one that deletes it. */
  actions?: (row: Row) => ReactNode;
  /** The width of the column with the buttons, in pixels. */
  actionsWidth?: number;
  /** Gives a text in place of the buttons, for a row with which nothing can be done any more. */
  over?: (row: Row) => string | undefined;
}

const BY_NAME: SortingState = [{ id: "name", desc: false }];

/** A table whose rows can be deleted, each after its name was typed. */
export function RemovableTable<Row extends { id: string }>(props: Props<Row>): ReactElement {
  const { label, columns, rows, removal, initialSort = BY_NAME } = props;
  const { actions, actionsWidth = 100, over } = props;
  const { refused, keptBecause, label: verb, name } = removal;
  const [asked, setAsked] = useState<Row>();
  const all = useMemo(
    (): Column<Row>[] => [
      ...columns,
      {
        id: "actions",
        header: "",
        align: "right",
        width: actionsWidth,
        cell: (row) =>
          over?.(row) ?? (
            <>
              {actions?.(row)}
              <RowButton
                refused={refused ?? keptBecause?.(row)}
                aria-label={`${verb} ${name(row)}`}
                onClick={() => {
                  setAsked(row);
                }}
              >
                {verb}
              </RowButton>
            </>
          ),
      },
    ],
    [columns, actions, actionsWidth, over, refused, keptBecause, verb, name],
  );
  return (
    <>
      <DataTable
        label={label}
        columns={all}
        rows={rows}
        rowId={(row) => row.id}
        initialSort={initialSort}
      />
      <ConfirmRow
        row={asked}
        onClose={() => {
          setAsked(undefined);
        }}
        mutation={removal.mutation}
        name={name}
        title={removal.title}
        action={removal.action}
        done={removal.done}
      >
        {asked && removal.effect(asked)}
      </ConfirmRow>
    </>
  );
}
