import { useQuery } from "@tanstack/react-query";
import type { ReactElement } from "react";
import { alertListQuery } from "@/features/alerts/api/alerts";
import { Mark } from "./Mark";

/** How many alerts fire, as a mark above every page. */
export function AlertMark(): ReactElement {
  const { data } = useQuery(alertListQuery);
  const firing = data?.filter(({ state }) => state === "firing").length ?? 0;
  return <Mark to="/alerts" count={firing} noun="alert" />;
}
