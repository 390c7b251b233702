import type { ReactElement } from "react";
import { Moment } from "@/components/Moment";
import { Note } from "@/components/Note";

/** Says when the figures of a sleeping cluster were sampled. */
export function SampleNote({ at }: { at: string | null | undefined }): ReactElement | null {
  if (!at) return null;
  return (
    <Note tone="asleep">
      The cluster is asleep: this was seen <Moment at={at} />. Looking does not wake it.
    </Note>
  );
}
