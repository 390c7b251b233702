import type { ReactElement } from "react";
import { Instant, Moment } from "@/components/Moment";
import { StateMark } from "@/components/StateMark";
import type { Incident } from "@/lib/api/types";
import classes from "./IncidentList.module.css";

interface Props {
  incidents: readonly Incident[];
  /** The names of clusters by id. */
  clusters: ReadonlyMap<string, string>;
}

/** The incidents with their updates, the open ones first. */
export function IncidentList({ incidents, clusters }: Props): ReactElement {
  const sorted = [...incidents].sort(
    (a, b) =>
      Number(b.state === "open") - Number(a.state === "open") ||
      b.opened_at.localeCompare(a.opened_at),
  );
  return (
    <div className={classes.list}>
      {sorted.map((incident) => (
        <article key={incident.id} className={classes.incident} aria-label={incident.title}>
          <header className={classes.head}>
            <h2 className={classes.title}>{incident.title}</h2>
            <StateMark tone={incident.state === "open" ? "failed" : "running"}>
              {incident.state === "open" ? "Open" : "Over"}
            </StateMark>
          </header>
          <p className={classes.facts}>
            {incident.cluster_id === null
              ? "The service as a whole"
              : (clusters.get(incident.cluster_id) ?? incident.cluster_id)}
            , since <Moment at={incident.opened_at} />
            {incident.closed_at && (
              <>
                , over <Moment at={incident.closed_at} />
              </>
            )}
          </p>
          <ol className={classes.updates}>
            {incident.updates.map((update) => (
              <li key={`${update.at} ${update.text}`}>
                <Instant at={update.at} to="minute" />
                <span>{update.text}</span>
              </li>
            ))}
          </ol>
        </article>
      ))}
    </div>
  );
}
