import { Button, Skeleton } from "@mantine/core";
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
import { ITEMS_MAX } from "@/lib/api/pages";
import { formatCount } from "@/lib/format/bytes";
import { useOverflow } from "@/lib/useOverflow";
import { useSorting } from "@/lib/useView";
import { legibly } from "./legibly";
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
  sortBy?: (row: Row) => string | number | bigint;
  /** `right` for numbers. */
  align?: "right";
  width?: string | number;
  /** Whether cells are sentences: they wrap, where names are cut in their middle. */
  isSentence?: boolean;
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

/** So many rows are drawn at once: a browser becomes slow with thousands of them. */
const DRAWN = 500;

/**
 * The table of the console. It sorts by its headers, and shows a skeleton while rows load. Its
 * first column is as wide as a name may be, and stays in view as the last one does, where the table
 * is wider than the page; on a phone each row is a card. A list that was cut says so below.
 */
export function DataTable<Row extends object>(props: Props<Row>): ReactElement {
  const { label, columns, rows, rowId, initialSort, shown } = props;
  const [sorting, setSorting] = useSorting(label, initialSort ?? NONE);
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
  const [most, setMost] = useState(DRAWN);
  const sorted = table.getRowModel().rows.slice(0, shown ?? ITEMS_MAX);
  const drawn = sorted.slice(0, shown ?? most);
  const [scroll, scrolls] = useOverflow();
  // The roles are written out: as cards the elements are no table for a browser any more.
  return (
    <div className={classes.frame}>
      <div
        ref={scroll}
        className={classes.scroll}
        {...(scrolls && { tabIndex: 0, role: "group", "aria-label": `${label}, scrolls` })}
      >
        <table
          role="table"
          className={classes.table}
          aria-label={label}
          aria-busy={rows === undefined}
        >
          <thead role="rowgroup">
            <tr role="row">
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
          <tbody role="rowgroup">
            {rows === undefined ? (
              <SkeletonRows columns={columns} />
            ) : (
              drawn.map((row) => (
                <tr key={row.id} role="row">
                  {columns.map((column) => (
                    <td
                      key={column.id}
                      role="cell"
                      data-align={column.align}
                      data-label={column.header || undefined}
                      data-sentence={column.isSentence}
                    >
                      {legibly(column.cell(row.original), column.isSentence)}
                    </td>
                  ))}
                </tr>
              ))
            )}
          </tbody>
        </table>
      </div>
      {drawn.length < sorted.length && shown === undefined && (
        <div className={classes.more}>
          {formatCount(drawn.length)} of {formatCount(sorted.length)} rows are shown.
          <Button
            variant="default"
            size="compact-xs"
            onClick={() => {
              setMost(most + DRAWN);
            }}
          >
            Show more
          </Button>
        </div>
      )}
      {shown === undefined && rows !== undefined && rows.length > ITEMS_MAX && (
        <div className={classes.more} role="status">
          This list is cut: it has more than {formatCount(ITEMS_MAX)} rows, and only the first{" "}
          {formatCount(ITEMS_MAX)} were read.
        </div>
      )}
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
    <th
      scope="col"
      role="columnheader"
      data-align={column.align}
      data-sorts={column.sortBy !== undefined || undefined}
      style={{ width: column.width }}
      aria-sort={order}
    >
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
        <tr key={key} role="row">
          {columns.map((column, index) => (
            <td key={column.id} role="cell">
              <Skeleton height={10} width={index === 0 ? "60%" : "40%"} />
            </td>
          ))}
        </tr>
      ))}
    </>
  );
}
