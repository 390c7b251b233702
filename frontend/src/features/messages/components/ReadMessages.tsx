import { Button, Group, Skeleton } from "@mantine/core";
import { IconRefresh } from "@tabler/icons-react";
import { useInfiniteQuery } from "@tanstack/react-query";
import type { ReactElement, ReactNode } from "react";
import { Empty } from "@/components/Empty";
import { Instant } from "@/components/Moment";
import { Note } from "@/components/Note";
import { ErrorPanel } from "@/components/ErrorPanel";
import { isCode } from "@/lib/api/client";
import { formatBytes, formatNumber } from "@/lib/format/bytes";
import { messagesQuery, type Start } from "../api/messages";
import { beyondWords, goneWords } from "../reach";
import { AsleepHere } from "./AsleepHere";
import { DamagedNote } from "./DamagedNote";
import classes from "./MessageExplorer.module.css";
import { MessageSplit } from "./MessageSplit";

interface Props {
  clusterId: string;
  topic: string;
  start: Start;
  firstStep: ReactNode;
  onWake: () => void;
}

/** Shows records from a place on, page by page. */
export function ReadMessages({ clusterId, topic, start, firstStep, onWake }: Props): ReactElement {
  const query = useInfiniteQuery(messagesQuery(clusterId, topic, start));
  if (query.isPending) return <GridSkeleton />;
  if (isCode(query.error, "cluster_asleep") && !query.data) return <AsleepHere onWake={onWake} />;
  if (query.error && !query.data) {
    const retry = (): void => void query.refetch();
    return <ErrorPanel error={query.error} what="The messages could not be read" onRetry={retry} />;
  }
  const messages = query.data.pages.flatMap((page) => page.items);
  const damaged = query.data.pages.flatMap((page) => page.damaged);
  const reached = query.data.pages[0]?.scanned.partitions ?? [];
  const gone = goneWords(start, reached);
  return (
    <>
      {gone && <Note tone="quiet">{gone}</Note>}
      <DamagedNote clusterId={clusterId} topic={topic} damaged={damaged} />
      <MessageSplit
        clusterId={clusterId}
        topic={topic}
        messages={messages}
        empty={
          <NothingRead
            start={start}
            reached={reached}
            more={query.hasNextPage}
            firstStep={firstStep}
          />
        }
      />
      {query.error && <ErrorPanel error={query.error} what="No more could be read" />}
      <Group gap="md" className={classes.foot}>
        <span>{formatNumber(messages.length, "message")}</span>
        {start.filter && (
          <span role="status">{scannedWords(query.data.pages.map((page) => page.scanned))}</span>
        )}
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

interface NothingProps {
  start: Start;
  reached: Parameters<typeof beyondWords>[1];
  more: boolean;
  firstStep: ReactNode;
}

/** Says why there is nothing: a place beyond the end, a filter, or an empty topic. */
function NothingRead({ start, reached, more, firstStep }: NothingProps): ReactElement {
  const beyond = beyondWords(start, reached);
  const empty = reached.every(({ begin, end }) => begin === end);
  if (beyond) return <Empty title="Beyond the end">{beyond}</Empty>;
  if (start.filter) {
    return (
      <Empty title="Nothing matches so far">
        {more
          ? "Read on to look further, or begin elsewhere."
          : "Everything in this direction was read. Begin elsewhere, or change the filter."}
      </Empty>
    );
  }
  if (start.from === "timestamp" && start.timestamp && !empty) {
    return (
      <Empty title="Beyond the end">
        No message is of <Instant at={start.timestamp} /> or later. Earlier ones are there.
      </Empty>
    );
  }
  return <Empty title="No messages here">{firstStep}</Empty>;
}

/** Returns how much a filter has scanned, in words. */
function scannedWords(pages: readonly { records: number; bytes: number }[]): string {
  const sum = (of: "records" | "bytes"): number => pages.reduce((all, page) => all + page[of], 0);
  return `scanned so far: ${formatNumber(sum("records"), "record")}, ${formatBytes(sum("bytes"))}`;
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
