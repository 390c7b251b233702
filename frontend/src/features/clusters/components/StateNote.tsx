import type { ReactElement } from "react";
import { Lasting } from "@/components/Moment";
import type { Cluster } from "@/lib/api/types";
import { formatDuration } from "@/lib/format/time";
import classes from "./StateNote.module.css";

/** What a cluster's state means, and since when it is so. */
export function StateNote({ cluster }: { cluster: Cluster }): ReactElement | null {
  const { phase, since } = cluster.status;
  const idle = formatDuration(cluster.spec.idle_timeout_s);
  if (phase === "asleep") {
    return (
      <div className={classes.root} data-phase="asleep">
        <div>
          <strong>Asleep</strong>
          {since && (
            <>
              {" "}
              for <Lasting since={since} />
            </>
          )}
          . No process runs, and compute costs nothing.
        </div>
        <div className={classes.more}>
          Every record, offset and rule is kept. The next client that connects wakes it and is
          served; looking at it here does not.
        </div>
      </div>
    );
  }
  if (phase === "running") {
    return (
      <p className={classes.quiet}>
        Running
        {since && (
          <>
            {" "}
            for <Lasting since={since} />
          </>
        )}
        . It goes to sleep once no client was connected for {idle}.
      </p>
    );
  }
  const words = WORDS[phase];
  if (!words) return null;
  const reason = cluster.status.conditions.find((condition) => condition.message)?.message;
  return (
    <div className={classes.root} data-phase={phase}>
      <div>{words}</div>
      {reason && <div className={classes.more}>{reason}</div>}
    </div>
  );
}

const WORDS: Partial<Record<Cluster["status"]["phase"], string>> = {
  provisioning: "It is being started. You may leave this page; clients that connect now are held.",
  suspended: "It is suspended: clients are refused. Records and offsets are kept.",
  deleting: "It is being deleted. Clients are refused.",
  deleted: "It is deleted.",
  failed: "It could not be started. Records are safe on storage; the service keeps trying.",
  unknown: "Its state cannot be read at the moment. Clients that are connected are not affected.",
};
