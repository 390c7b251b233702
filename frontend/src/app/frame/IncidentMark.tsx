import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import type { ReactElement } from "react";
import { incidentListQuery } from "@/features/incidents/api/incidents";
import classes from "./TopLine.module.css";

/** In the line above every page while something is wrong; otherwise nothing. */
export function IncidentMark(): ReactElement | null {
  const { data } = useQuery(incidentListQuery);
  const open = data?.filter(({ state }) => state === "open").length ?? 0;
  if (open === 0) return null;
  return (
    <Link to="/incidents" className={classes.incident} role="status">
      {open === 1 ? "1 incident" : `${String(open)} incidents`}
    </Link>
  );
}
