import { Button } from "@mantine/core";
import type { ReactElement } from "react";
import { Note, NoteMore } from "@/components/Note";

/**
 * Shown in place of messages while the cluster sleeps. Reading messages needs brokers, and viewing
 * a page wakes no cluster.
 */
export function AsleepHere({ onWake }: { onWake: () => void }): ReactElement {
  return (
    <Note
      tone="asleep"
      action={
        <Button variant="default" onClick={onWake}>
          Wake it and read
        </Button>
      }
    >
      <strong>The cluster is asleep.</strong> Reading its messages needs a running broker.
      <NoteMore>
        It starts within seconds, and goes back to sleep when no client is connected. All records
        are kept.
      </NoteMore>
    </Note>
  );
}
