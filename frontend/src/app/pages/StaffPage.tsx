import { useQuery } from "@tanstack/react-query";
import type { ReactElement } from "react";
import { Empty } from "@/components/Empty";
import { Listed } from "@/components/Listed";
import { Section } from "@/components/Section";
import {
  staffCellsQuery,
  staffClustersQuery,
  staffIncidentsQuery,
  staffOperationsQuery,
  staffRequestsQuery,
} from "@/features/staff/api/staff";
import { LimitRequests } from "@/features/staff/components/LimitRequests";
import { CELLS, CLUSTERS, INCIDENTS, OPERATIONS } from "@/features/staff/components/tables";
import { idOf, StaffPart } from "./StaffPart";

/** The first page of staff: what runs, what failed and what was requested. */
export function StaffPage(): ReactElement {
  const requests = useQuery(staffRequestsQuery);
  return (
    <>
      <StaffPart
        title="Incidents"
        query={useQuery(staffIncidentsQuery)}
        columns={INCIDENTS}
        rowId={idOf}
      />
      <Section title="Limit requests">
        <Listed
          query={requests}
          what="The requests could not be read"
          empty={<Empty title="No request">No request is open.</Empty>}
        >
          {(rows) => <LimitRequests requests={rows} />}
        </Listed>
      </Section>
      <StaffPart title="Cells" query={useQuery(staffCellsQuery)} columns={CELLS} rowId={idOf} />
      <StaffPart
        title="Operations"
        query={useQuery(staffOperationsQuery)}
        columns={OPERATIONS}
        rowId={idOf}
      />
      <StaffPart
        title="Clusters"
        query={useQuery(staffClustersQuery)}
        columns={CLUSTERS}
        rowId={idOf}
      />
    </>
  );
}
