import { Skeleton } from "@mantine/core";
import {
  type ColumnDef,
  type SortingState,
  createSortedRowModel,
  rowSortingFeature,
  sortFn_alphanumeric,
  sortFn_basic,
  tableFeatures,
  useTable,
} from "@tanstack/react-table";
import { type ReactElement, type ReactNode, useMemo, useState } from "react";
import { useOverflow } from "@/lib/useOverflow";
import classes from "./DataTable.module.css";

const features = tableFeatures({
  rowSortingFeature,
  sortedRowModel: createSortedRowModel(),
  sortFns: { alphanumeric: sortFn_alphanumeric, basic: sortFn_basic },
});

/**
 * A column: what its cells show, and the value they sort by. Without `sortBy` it cannot be sorted.
 */
export interface Column<Row> {
  id: string;
  header: string;
  cell: (row: Row) => ReactNode;
  sortBy?: (row: Row) => string | number;
  /** `right` for numbers. */
  align?: "right";
  width?: string | number;
}

interface Props<Row> {
  /** The label for screen readers, such as "Topics of the cluster". */
  label: string;
  columns: Column<Row>[];
  /** Undefined while they load: the table then shows a skeleton of its own shape. */
  rows: readonly Row[] | undefined;
  rowId: (row: Row) => string;
  initialSort?: SortingState;
  /** At most so many rows are drawn. All rows are sorted. */
  shown?: number;
}

const NONE: never[] = [];

/** The table of the console: it sorts by its headers, and shows a skeleton while rows load. */
export function DataTable<Row extends object>(props: Props<Row>): ReactElement {
  const { label, columns, rows, rowId, initialSort, shown } = props;
  const [sorting, setSorting] = useState<SortingState>(initialSort ?? []);
  const definitions = useMemo(() => columns.map(definitionOf), [columns]);
  const table = useTable({
    features,
    columns: definitions,
    data: rows ?? (NONE as readonly Row[]),
    getRowId: rowId,
    state: { sorting },
    onSortingChange: setSorting,
    enableSortingRemoval: false,
  });
  const drawn = table.getRowModel().rows.slice(0, shown);
  const [scroll, scrolls] = useOverflow();
  return (
    <div
      ref={scroll}
      className={classes.scroll}
      {...(scrolls && { tabIndex: 0, role: "group", "aria-label": `${label}, scrolls` })}
    >
      <table className={classes.table} aria-label={label} aria-busy={rows === undefined}>
        <thead>
          <tr>
            {columns.map((column) => (
              <Heading
                key={column.id}
                column={column}
                sorted={sorting.find((s) => s.id === column.id)}
                onSort={() => table.getColumn(column.id)?.toggleSorting()}
              />
            ))}
          </tr>
        </thead>
        <tbody>
          {rows === undefined ? (
            <SkeletonRows columns={columns} />
          ) : (
            drawn.map((row) => (
              <tr key={row.id}>
                {columns.map((column) => (
                  <td key={column.id} data-align={column.align}>
                    {column.cell(row.original)}
                  </td>
                ))}
              </tr>
            ))
          )}
        </tbody>
      </table>
    </div>
  );
}

function definitionOf<Row extends object>(column: Column<Row>): ColumnDef<typeof features, Row> {
  const { id, sortBy } = column;
  return sortBy
    ? { id, accessorFn: sortBy, sortFn: "basic", sortDescFirst: false }
    : { id, enableSorting: false };
}

interface HeadingProps<Row> {
  column: Column<Row>;
  sorted: { desc: boolean } | undefined;
  onSort: () => void;
}

function Heading<Row>({ column, sorted, onSort }: HeadingProps<Row>): ReactElement {
  const order = sorted ? (sorted.desc ? "descending" : "ascending") : undefined;
  return (
    <th scope="col" data-align={column.align} style={{ width: column.width }} aria-sort={order}>
      {column.sortBy ? (
        <button type="button" className={classes.sort} onClick={onSort}>
          {column.header}
          <span aria-hidden="true">{sorted ? (sorted.desc ? " ↓" : " ↑") : ""}</span>
        </button>
      ) : (
        column.header
      )}
    </th>
  );
}

function SkeletonRows<Row>({ columns }: { columns: Column<Row>[] }): ReactElement {
  return (
    <>
      {["a", "b", "c", "d"].map((key) => (
        <tr key={key}>
          {columns.map((column, index) => (
            <td key={column.id}>
              <Skeleton height={10} width={index === 0 ? "60%" : "40%"} />
            </td>
          ))}
        </tr>
      ))}
    </>
  );
}
