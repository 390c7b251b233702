import type { ReactElement } from "react";
import { Instant, Lasting } from "@/components/Moment";
import { Note, NoteMore, type Tone } from "@/components/Note";
import type { Cluster, Phase } from "@/lib/api/types";
import { formatNumber } from "@/lib/format/bytes";
import { formatDuration } from "@/lib/format/time";

/** A note on what a cluster's state means, and since when it is in it. */
export function StateNote({ cluster }: { cluster: Cluster }): ReactElement {
  const { phase } = cluster.status;
  if (phase === "asleep") return <Asleep since={cluster.status.since} />;
  if (phase === "running") return <Running cluster={cluster} />;
  const [tone, words] = WORDS[phase];
  const reason = cluster.status.conditions.find((condition) => condition.message)?.message;
  return (
    <Note tone={tone}>
      {words}
      {reason && <NoteMore>{reason}</NoteMore>}
    </Note>
  );
}

const WORDS: Record<Exclude<Phase, "asleep" | "running">, [Tone, string]> = {
  provisioning: [
    "waking",
    "It is being started. You may leave this page; clients that connect now are held.",
  ],
  suspended: ["suspended", "It is suspended: clients are refused. Records and offsets are kept."],
  deleting: ["quiet", "It is being deleted. Clients are refused."],
  deleted: ["quiet", "It is deleted. Its data is kept for 7 days, and it can be brought back."],
  failed: ["failed", "It could not be started. Records are safe; the service keeps trying."],
  unknown: ["quiet", "Its state cannot be read now. Connected clients are not affected."],
};

function Asleep({ since }: { since: string | null }): ReactElement {
  return (
    <Note tone="asleep">
      <strong>Asleep</strong>
      {since && (
        <>
          {" "}
          for <Lasting since={since} />
        </>
      )}
      . No process runs, and compute costs nothing.
      <NoteMore>
        Every record, offset and rule is kept. The next client that connects wakes it and is served;
        looking at it here does not.
      </NoteMore>
    </Note>
  );
}

function Running({ cluster }: { cluster: Cluster }): ReactElement {
  const { since, connections, restarts } = cluster.status;
  const idle = formatDuration(cluster.spec.idle_timeout_s);
  const nobody = connections === 0;
  const held = cluster.schedule?.awake === true;
  return (
    <Note tone="running">
      Running
      {since && (
        <>
          {" "}
          for <Lasting since={since} />
        </>
      )}
      {connections !== null && `, ${clientWords(connections)}`}
      {restarts ? `, ${formatNumber(restarts, "broker")} replaced` : ""}.
      <NoteMore>
        {cluster.spec.scale.min > 0 && "It never sleeps: that is chosen in its settings."}
        {cluster.spec.scale.min === 0 && held && (
          <>
            Its hours keep it awake
            {cluster.schedule?.until && (
              <>
                {" "}
                until <Instant at={cluster.schedule.until} to="minute" />
              </>
            )}
            .
          </>
        )}
        {cluster.spec.scale.min === 0 &&
          !held &&
          (nobody
            ? `It goes to sleep when that stays so for ${idle}.`
            : `It goes to sleep once no client was connected for ${idle}.`)}
      </NoteMore>
    </Note>
  );
}

function clientWords(connections: number): string {
  if (connections === 0) return "no client is connected";
  return formatNumber(connections, "client connection");
}
