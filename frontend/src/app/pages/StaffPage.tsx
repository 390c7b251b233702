import { useQuery } from "@tanstack/react-query";
import type { ReactElement } from "react";
import { type Column, DataTable } from "@/components/DataTable";
import { Empty } from "@/components/Empty";
import { Listed } from "@/components/Listed";
import { PageHead } from "@/components/PageHead";
import { Section } from "@/components/Section";
import {
  staffCellsQuery,
  staffClustersQuery,
  staffIncidentsQuery,
  staffInvoiceMonthsQuery,
  staffMissingInvoicesQuery,
  staffOperationsQuery,
  staffRequestsQuery,
} from "@/features/staff/api/staff";
import { LimitRequests } from "@/features/staff/components/LimitRequests";
import {
  CELLS,
  CLUSTERS,
  INCIDENTS,
  INVOICE_MONTHS,
  MISSING_INVOICES,
  OPERATIONS,
} from "@/features/staff/components/tables";

/** The page of staff: what runs, what failed, what was requested and what is not invoiced. */
export function StaffPage(): ReactElement {
  const requests = useQuery(staffRequestsQuery);
  return (
    <>
      <PageHead
        title="Staff"
        lead="How the service runs, for its staff. No customer's records are ever shown here."
      />
      <Part title="Incidents" query={useQuery(staffIncidentsQuery)} columns={INCIDENTS} />
      <Section title="Limit requests">
        <Listed
          query={requests}
          what="The requests could not be read"
          empty={<Empty title="No request">No request is open.</Empty>}
        >
          {(rows) => <LimitRequests requests={rows} />}
        </Listed>
      </Section>
      <Part
        title="Missing invoices"
        query={useQuery(staffMissingInvoicesQuery)}
        columns={MISSING_INVOICES}
      />
      <Part
        title="Months to invoice"
        query={useQuery(staffInvoiceMonthsQuery)}
        columns={INVOICE_MONTHS}
      />
      <Part title="Cells" query={useQuery(staffCellsQuery)} columns={CELLS} />
      <Part title="Operations" query={useQuery(staffOperationsQuery)} columns={OPERATIONS} />
      <Part title="Clusters" query={useQuery(staffClustersQuery)} columns={CLUSTERS} />
    </>
  );
}

interface PartProps<Row> {
  title: string;
  query: { data: Row[] | undefined; error: Error | null; refetch: () => unknown };
  columns: Column<Row>[];
}

function Part<Row extends { id: string }>({ title, query, columns }: PartProps<Row>): ReactElement {
  return (
    <Section title={title}>
      <Listed
        query={query}
        what={`${title} could not be read`}
        empty={<Empty title="Nothing">There is none at the moment.</Empty>}
      >
        {(rows) => (
          <DataTable label={title} columns={columns} rows={rows} rowId={(row) => row.id} />
        )}
      </Listed>
    </Section>
  );
}
