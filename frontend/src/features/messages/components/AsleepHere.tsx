import { Button } from "@mantine/core";
import type { ReactElement } from "react";
import { Note, NoteMore } from "@/components/Note";

/** Stands where messages would be: reading them needs brokers, and looking wakes nobody. */
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
        It starts within seconds, and goes back to sleep when nobody is connected. All records are
        kept.
      </NoteMore>
    </Note>
  );
}
