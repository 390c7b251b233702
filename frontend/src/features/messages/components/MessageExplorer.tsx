import { Button, Group, Skeleton, Stack } from "@mantine/core";
import { IconPlayerPause, IconPlayerPlay, IconRefresh } from "@tabler/icons-react";
import { useInfiniteQuery } from "@tanstack/react-query";
import { type ReactElement, type ReactNode, useState } from "react";
import { Empty } from "@/components/Empty";
import { ErrorPanel } from "@/components/ErrorPanel";
import type { Message } from "@/lib/api/types";
import { formatCount } from "@/lib/format/bytes";
import { messagesQuery, type Start } from "../api/messages";
import { useTail } from "../api/useTail";
import classes from "./MessageExplorer.module.css";
import { MessageGrid, messageId } from "./MessageGrid";
import { MessagePanel } from "./MessagePanel";
import { type Place, StartBar } from "./StartBar";

interface Props {
  clusterId: string;
  topic: string;
  partitions: number;
  place: Place;
  onPlace: (place: Place) => void;
  /** What stands in an empty topic: the first command to try. */
  firstStep: ReactNode;
  actions?: ReactNode;
}

/** A topic's records: read from a place, or followed live. */
export function MessageExplorer(props: Props): ReactElement {
  const { clusterId, topic, partitions, place, onPlace, actions } = props;
  return (
    <Stack gap="sm">
      <Group justify="space-between" gap="xs">
        <StartBar place={place} partitions={partitions} onChange={onPlace} />
        {actions}
      </Group>
      {place.from === "live" ? (
        <LiveMessages clusterId={clusterId} topic={topic} firstStep={props.firstStep} />
      ) : (
        <ReadMessages
          // Another place is another reading: nothing of the old one stays selected.
          key={JSON.stringify(place)}
          clusterId={clusterId}
          topic={topic}
          start={startOf(place)}
          firstStep={props.firstStep}
        />
      )}
    </Stack>
  );
}

/** The query for a place. A time without a value means the beginning of this day. */
function startOf(place: Place): Start {
  const { from, partition } = place;
  if (from === "offset") return { from, partition, offset: place.offset ?? 0 };
  if (from === "timestamp") {
    const chosen = Date.parse(place.timestamp ?? "");
    const instant = Number.isNaN(chosen) ? new Date().setHours(0, 0, 0, 0) : chosen;
    return { from, partition, timestamp: new Date(instant).toISOString() };
  }
  return { from: from === "oldest" ? "oldest" : "newest", partition };
}

interface ReadProps {
  clusterId: string;
  topic: string;
  start: Start;
  firstStep: ReactNode;
}

function ReadMessages({ clusterId, topic, start, firstStep }: ReadProps): ReactElement {
  const query = useInfiniteQuery(messagesQuery(clusterId, topic, start));
  if (query.error) {
    return (
      <ErrorPanel
        error={query.error}
        what="The messages could not be read"
        onRetry={() => void query.refetch()}
      />
    );
  }
  if (query.isPending) return <GridSkeleton />;
  const messages = query.data.pages.flatMap((page) => page.items);
  if (messages.length === 0) {
    return <Empty title="No messages here">{firstStep}</Empty>;
  }
  return (
    <>
      <Split topic={topic} messages={messages} />
      <Group gap="md" className={classes.foot}>
        <span>{formatCount(messages.length)} messages</span>
        <Button
          variant="default"
          size="compact-xs"
          disabled={!query.hasNextPage}
          loading={query.isFetchingNextPage}
          onClick={() => void query.fetchNextPage()}
        >
          {query.hasNextPage ? "Read on" : "All read"}
        </Button>
        <Button
          variant="subtle"
          size="compact-xs"
          leftSection={<IconRefresh size={13} />}
          loading={query.isRefetching && !query.isFetchingNextPage}
          onClick={() => void query.refetch()}
        >
          Read again
        </Button>
      </Group>
    </>
  );
}

const TAIL_WORDS = {
  connecting: "Connecting",
  live: "Live: new messages appear as they are written",
  paused: "Paused",
  broken: "The stream ended",
};

interface LiveProps {
  clusterId: string;
  topic: string;
  firstStep: ReactNode;
}

function LiveMessages({ clusterId, topic, firstStep }: LiveProps): ReactElement {
  const tail = useTail(clusterId, topic, true);
  const paused = tail.state === "paused";
  return (
    <>
      <Group gap="sm" className={classes.foot}>
        <span className={classes.live} data-state={tail.state} role="status">
          <span className={classes.dot} aria-hidden="true" />
          {TAIL_WORDS[tail.state]}
          {tail.held > 0 && `, ${formatCount(tail.held)} waiting`}
        </span>
        <Button
          variant="default"
          size="compact-xs"
          leftSection={paused ? <IconPlayerPlay size={13} /> : <IconPlayerPause size={13} />}
          onClick={() => {
            tail.setPaused(!paused);
          }}
        >
          {paused ? "Go on" : "Pause"}
        </Button>
        <Button variant="subtle" size="compact-xs" onClick={tail.clear}>
          Clear
        </Button>
      </Group>
      {tail.messages.length === 0 ? (
        <Empty title="Waiting for messages">{firstStep}</Empty>
      ) : (
        <Split topic={topic} messages={tail.messages} />
      )}
    </>
  );
}

function Split({ topic, messages }: { topic: string; messages: Message[] }): ReactElement {
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

function GridSkeleton(): ReactElement {
  return (
    <div className={classes.skeleton} aria-busy="true" aria-label="Reading messages">
      {["60%", "75%", "52%", "68%", "80%", "57%", "71%"].map((width) => (
        <Skeleton key={width} height={12} width={width} />
      ))}
    </div>
  );
}
