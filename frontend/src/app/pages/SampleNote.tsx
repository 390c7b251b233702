import type { ReactElement } from "react";
import type { Cluster } from "@/lib/api/types";
import classes from "./SampleNote.module.css";

/** Says of what is shown for a sleeping cluster that it is the last sample. */
export function SampleNote({ cluster }: { cluster: Cluster | undefined }): ReactElement | null {
  if (cluster?.status.phase !== "asleep") return null;
  return (
    <p className={classes.root}>
      The cluster is asleep: this is how it was when it went to sleep. Looking does not wake it.
    </p>
  );
}
