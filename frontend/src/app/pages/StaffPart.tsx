import type { ReactElement, ReactNode } from "react";
import { type Column, DataTable } from "@/components/DataTable";
import { Empty } from "@/components/Empty";
import { Listed } from "@/components/Listed";
import { Section } from "@/components/Section";

interface Props<Row> {
  title: string;
  /** What the rows are, and what it means where there are some. */
  lead?: string;
  actions?: ReactNode;
  query: { data: Row[] | undefined; error: Error | null; refetch: () => unknown };
  columns: Column<Row>[];
  rowId: (row: Row) => string;
}

/** A list of every organization's rows, for staff. */
export function StaffPart<Row extends object>(props: Props<Row>): ReactElement {
  const { title, lead, actions, query, columns, rowId } = props;
  return (
    <Section title={title} lead={lead} actions={actions}>
      <Listed
        query={query}
        what={`${title} could not be read`}
        empty={<Empty title="Nothing">There is none at the moment.</Empty>}
      >
        {(rows) => <DataTable label={title} columns={columns} rows={rows} rowId={rowId} />}
      </Listed>
    </Section>
  );
}

export const idOf = ({ id }: { id: string }): string => id;
