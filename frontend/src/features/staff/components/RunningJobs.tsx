import type { ReactElement } from "react";
import { Moment } from "@/components/Moment";
import type { StaffCell } from "@/lib/api/types";
import { formatBytes, formatCount } from "@/lib/format/bytes";

type Job = StaffCell["meter"]["running"][number];

const NAMES = { rollup: "Roll-up", reconcile: "Comparison with the log" } as const;

/** The Spark jobs of a cell without a result yet: for each its day, its stage and what it read. */
export function RunningJobs({ jobs }: { jobs: readonly Job[] }): ReactElement {
  if (!jobs.length) return <span>–</span>;
  return (
    <>
      {jobs.map((job) => (
        <div key={job.id}>
          {NAMES[job.job]} of {job.day}: {stageOf(job)}. Reported <Moment at={job.reported_at} />.
        </div>
      ))}
    </>
  );
}

function stageOf({ progress }: Job): string {
  if (!progress) return "it starts";
  const stage = `stage ${String(progress.stage)} of ${String(progress.stages)}, ${progress.what}`;
  if (!progress.tasks) return stage;
  const tasks = `${formatCount(progress.tasks_done)} of ${formatCount(progress.tasks)} tasks`;
  const read = `${formatCount(progress.rows)} rows and ${formatBytes(progress.bytes)} read`;
  return `${stage}; ${tasks}, ${read}`;
}
