import { Skeleton } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import type { ReactElement } from "react";
import { Empty } from "@/components/Empty";
import { Listed } from "@/components/Listed";
import { PageHead } from "@/components/PageHead";
import { incidentListQuery } from "@/features/incidents/api/incidents";
import { IncidentList } from "@/features/incidents/components/IncidentList";
import { useNames } from "./useNames";

/** Open and closed incidents. */
export function IncidentsPage(): ReactElement {
  const incidents = useQuery(incidentListQuery);
  const names = useNames();
  return (
    <>
      <PageHead
        title="Incidents"
        lead="Faults of your clusters and of Freshet as a whole. The service opens and closes them."
      />
      <Listed
        query={incidents}
        what="The incidents could not be read"
        empty={
          <Empty title="No incident">
            Nothing is wrong, and nothing was. Owners and admins get a mail when that changes.
          </Empty>
        }
      >
        {(rows) =>
          rows ? (
            <IncidentList incidents={rows} clusters={names.clusters} />
          ) : (
            <Skeleton height={140} maw={860} />
          )
        }
      </Listed>
    </>
  );
}
