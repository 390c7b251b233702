import { type ReactElement, useState } from "react";
import type { Message } from "@/lib/api/types";
import classes from "./MessageExplorer.module.css";
import { MessageGrid, messageId } from "./MessageGrid";
import { MessagePanel } from "./MessagePanel";

interface Props {
  topic: string;
  messages: Message[];
}

/** The list of records, and beside it the selected one. */
export function MessageSplit({ topic, messages }: Props): ReactElement {
  const [selected, setSelected] = useState<Message>();
  return (
    <div
      className={classes.split}
      data-open={selected !== undefined || undefined}
      onKeyDown={(event) => {
        if (event.key === "Escape") setSelected(undefined);
      }}
    >
      <MessageGrid messages={messages} selected={selected} onSelect={setSelected} />
      {selected && (
        <MessagePanel
          key={messageId(selected)}
          topic={topic}
          message={selected}
          onClose={() => {
            setSelected(undefined);
          }}
        />
      )}
    </div>
  );
}
