import { useQuery } from "@tanstack/react-query";
import { type ReactElement, useState } from "react";
import { Empty } from "@/components/Empty";
import { Listed } from "@/components/Listed";
import { SidePanel } from "@/components/SidePanel";
import type { Limit } from "@/lib/api/types";
import { limitListQuery } from "../api/limits";
import { limitLabel } from "../words";
import { LimitRequestForm } from "./LimitRequestForm";
import { LimitTable } from "./LimitTable";

/** The limits of the organization or of a cluster, with the form to request higher ones. */
export function Limits({ clusterId }: { clusterId?: string }): ReactElement {
  const limits = useQuery(limitListQuery(clusterId));
  const [asked, setAsked] = useState<Limit>();
  const close = (): void => {
    setAsked(undefined);
  };
  const shown = clusterId ? limits.data?.filter(({ scope }) => scope === "cluster") : limits.data;
  return (
    <>
      <Listed
        query={{ ...limits, data: shown }}
        what="The limits could not be read"
        empty={<Empty title="No limit">This service limits nothing.</Empty>}
      >
        {(rows) => (
          <LimitTable limits={rows} ofCluster={clusterId !== undefined} onRequest={setAsked} />
        )}
      </Listed>
      <SidePanel
        opened={asked !== undefined}
        onClose={close}
        title={`Ask for more: ${limitLabel(asked?.name ?? "")}`}
      >
        {asked && <LimitRequestForm limit={asked} clusterId={clusterId} onDone={close} />}
      </SidePanel>
    </>
  );
}
