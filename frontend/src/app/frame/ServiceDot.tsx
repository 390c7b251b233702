import { Tooltip } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import type { ReactElement } from "react";
import { useFreshness } from "@/lib/api/freshness";
import { failingParts, readinessQuery } from "./readiness";
import classes from "./ServiceDot.module.css";

/** The state of the whole service, at the foot of the rail. */
export function ServiceDot(): ReactElement {
  const { data, isError } = useQuery(readinessQuery);
  const { everything } = useFreshness();
  const failing = data ? failingParts(data) : [];
  const state =
    isError || everything ? "away" : !data ? "unknown" : failing.length > 0 ? "degraded" : "ready";
  const words = {
    away: "Server not reachable",
    unknown: "Service status",
    degraded: `Not ready: ${failing.join(", ")}`,
    ready: "All parts ready",
  }[state];
  return (
    <Tooltip label={words} position="right">
      <div className={classes.root} data-state={state} role="status">
        <span className={classes.dot} aria-hidden="true" />
        <span className={classes.words}>{words}</span>
      </div>
    </Tooltip>
  );
}
