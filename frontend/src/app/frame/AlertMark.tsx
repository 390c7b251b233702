import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import type { ReactElement } from "react";
import { alertListQuery } from "@/features/alerts/api/alerts";
import classes from "./TopLine.module.css";

/** In the line above every page while an alert fires; otherwise nothing. */
export function AlertMark(): ReactElement | null {
  const { data } = useQuery(alertListQuery);
  const firing = data?.filter(({ state }) => state === "firing").length ?? 0;
  if (firing === 0) return null;
  return (
    <Link to="/alerts" className={classes.incident} role="status">
      {firing === 1 ? "1 alert" : `${String(firing)} alerts`}
    </Link>
  );
}
