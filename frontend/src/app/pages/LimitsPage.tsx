import { useQuery } from "@tanstack/react-query";
import { type ReactElement, useState } from "react";
import { Empty } from "@/components/Empty";
import { Listed } from "@/components/Listed";
import { Section } from "@/components/Section";
import { SidePanel } from "@/components/SidePanel";
import { limitListQuery, limitRequestListQuery } from "@/features/limits/api/limits";
import { LimitRequestForm } from "@/features/limits/components/LimitRequestForm";
import { LimitRequestTable } from "@/features/limits/components/LimitRequestTable";
import { LimitTable } from "@/features/limits/components/LimitTable";
import type { Limit } from "@/lib/api/types";

/** What is limited, and the way to more. */
export function LimitsPage(): ReactElement {
  const limits = useQuery(limitListQuery());
  const requests = useQuery(limitRequestListQuery);
  const [asked, setAsked] = useState<Limit>();
  const close = (): void => {
    setAsked(undefined);
  };
  return (
    <>
      <Section title="Limits" lead="All of them, and what happens at each.">
        <Listed
          query={limits}
          what="The limits could not be read"
          empty={<Empty title="No limit">This service limits nothing.</Empty>}
        >
          {(rows) => <LimitTable limits={rows} onRequest={setAsked} />}
        </Listed>
      </Section>
      {(requests.data?.length ?? 0) > 0 && (
        <Section title="Requests for more">
          <LimitRequestTable requests={requests.data} />
        </Section>
      )}
      <SidePanel
        opened={asked !== undefined}
        onClose={close}
        title={`More ${asked?.name.replaceAll("_", " ") ?? ""}`}
      >
        {asked && <LimitRequestForm limit={asked} onDone={close} />}
      </SidePanel>
    </>
  );
}
