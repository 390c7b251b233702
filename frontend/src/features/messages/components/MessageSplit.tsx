import { Skeleton } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import type { ReactElement, ReactNode } from "react";
import { ErrorPanel } from "@/components/ErrorPanel";
import type { Message } from "@/lib/api/types";
import { useView } from "@/lib/useView";
import { type RecordPlace, wholeRecordQuery } from "../api/messages";
import classes from "./MessageExplorer.module.css";
import { MessageGrid, messageId } from "./MessageGrid";
import { MessagePanel } from "./MessagePanel";

interface Props {
  clusterId: string;
  topic: string;
  messages: Message[];
  /** Shown in place of a list without records. */
  empty: ReactNode;
}

/** The list of records, and beside it the one that the address names. */
export function MessageSplit({ clusterId, topic, messages, empty }: Props): ReactElement {
  const [held, hold] = useView("message");
  const selected = messages.find((message) => messageId(message) === held);
  const place = held === undefined ? undefined : placeOf(held);
  const close = (): void => {
    if (held !== undefined) hold(undefined);
  };
  return (
    <div
      className={classes.split}
      data-open={(selected ?? place) !== undefined || undefined}
      onKeyDown={(event) => {
        if (event.key === "Escape") close();
      }}
    >
      {messages.length === 0 ? (
        empty
      ) : (
        <MessageGrid
          messages={messages}
          selected={selected}
          onSelect={(message) => {
            // Whoever walks through the list with the arrows goes back to the list at once.
            hold(messageId(message), held === undefined ? "step" : "replaces");
          }}
        />
      )}
      {selected ? (
        <MessagePanel
          key={held}
          clusterId={clusterId}
          topic={topic}
          message={selected}
          onClose={close}
        />
      ) : (
        place && (
          <Linked key={held} clusterId={clusterId} topic={topic} place={place} onClose={close} />
        )
      )}
    </div>
  );
}

/** Returns the place of a record in an address, `0-42`; undefined for anything else. */
function placeOf(held: string): RecordPlace | undefined {
  const [, partition, offset] = /^(\d{1,9})-(\d{1,19})$/.exec(held) ?? [];
  return partition === undefined || offset === undefined
    ? undefined
    : { partition: Number(partition), offset };
}

interface LinkedProps {
  clusterId: string;
  topic: string;
  place: RecordPlace;
  onClose: () => void;
}

/** The record of an address that is not in the list: another page of it, or written since. */
function Linked({ clusterId, topic, place, onClose }: LinkedProps): ReactElement {
  const query = useQuery(wholeRecordQuery(clusterId, topic, place));
  if (query.data) {
    const shared = { clusterId, topic, onClose };
    return <MessagePanel {...shared} message={query.data} />;
  }
  if (query.error) {
    const retry = (): void => void query.refetch();
    return <ErrorPanel error={query.error} what="The message could not be read" onRetry={retry} />;
  }
  return <Skeleton height={320} />;
}
