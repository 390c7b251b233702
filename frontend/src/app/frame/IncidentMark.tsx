import { useQuery } from "@tanstack/react-query";
import type { ReactElement } from "react";
import { incidentListQuery } from "@/features/incidents/api/incidents";
import { Mark } from "./Mark";

/** How many incidents are open, as a mark above every page. */
export function IncidentMark(): ReactElement {
  const { data } = useQuery(incidentListQuery);
  const open = data?.filter(({ state }) => state === "open").length ?? 0;
  return <Mark to="/incidents" count={open} noun="incident" />;
}
