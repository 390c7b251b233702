import { useQuery } from "@tanstack/react-query";
import { type ReactElement, useMemo } from "react";
import { Answered } from "@/components/Answered";
import { Section } from "@/components/Section";
import { clusterListQuery } from "@/features/clusters/api/clusters";
import { limitRequestListQuery } from "@/features/limits/api/limits";
import { LimitRequestTable } from "@/features/limits/components/LimitRequestTable";
import { Limits } from "@/features/limits/components/Limits";

/** The limits of the organization, and requests for higher ones. */
export function LimitsPage(): ReactElement {
  const requests = useQuery(limitRequestListQuery);
  const { data: clusters } = useQuery(clusterListQuery);
  const names = useMemo(
    () => new Map((clusters ?? []).map(({ id, name }) => [id, name])),
    [clusters],
  );
  return (
    <>
      <Section
        title="Limits"
        lead="All limits, and what happens at each. What a cluster uses is shown in its settings."
      >
        <Limits />
      </Section>
      {(requests.error ?? requests.data?.length) ? (
        <Section title="Requests for more">
          <Answered queries={[requests]} what="The requests could not be read">
            <LimitRequestTable requests={requests.data ?? []} clusters={names} />
          </Answered>
        </Section>
      ) : null}
    </>
  );
}
