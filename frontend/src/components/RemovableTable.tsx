import type { SortingState } from "@tanstack/react-table";
import type { UseMutationResult } from "@tanstack/react-query";
import { type ReactElement, type ReactNode, useMemo, useState } from "react";
import { ConfirmRow } from "./ConfirmRow";
import { type Column, DataTable } from "./DataTable";
import { RowButton } from "./GuardedButton";

/** How a row is destroyed. */
interface Removal<Row> {
  mutation: UseMutationResult<unknown, Error, Row>;
  /** The row's name: it has to be typed. */
  name: (row: Row) => string;
  /** The button at the row's end: "Delete". */
  label: string;
  /** The dialog's title: "Delete the credential". */
  title: string;
  /** The dialog's button, where its words are not the title's. */
  action?: string;
  /** What is said once it is done, after the name: "is deleted". */
  done: string;
  /** Why the person may not; undefined where they may. */
  refused: string | undefined;
  /** Why this row stays, whoever asks; undefined where it may go. */
  keptBecause?: (row: Row) => string | undefined;
  /** What will be gone, what stays, and whether and how it can be undone. */
  effect: (row: Row) => ReactNode;
}

interface Props<Row> {
  /** For screen readers: "Credentials". */
  label: string;
  columns: Column<Row>[];
  /** Undefined while it loads: the table then keeps its shape. */
  rows: readonly Row[] | undefined;
  removal: Removal<Row>;
  initialSort?: SortingState;
  /** What else can be done with a row: buttons before the last one. */
  actions?: (row: Row) => ReactNode;
  /** The width of the column with the buttons, in pixels. */
  actionsWidth?: number;
  /** What stands in place of the buttons where nothing can be done any more. */
  over?: (row: Row) => string | undefined;
}

const BY_NAME: SortingState = [{ id: "name", desc: false }];

/** A table whose rows can be destroyed, each after its name was typed. */
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
