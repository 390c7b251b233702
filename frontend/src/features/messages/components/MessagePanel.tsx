import { CloseButton } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { type ReactElement, useState } from "react";
import { ErrorPanel } from "@/components/ErrorPanel";
import { Instant } from "@/components/Moment";
import { Escaped } from "@/components/Name";
import type { Header, Message, RecordBytes } from "@/lib/api/types";
import { formatBytes, formatCount } from "@/lib/format/bytes";
import { instantOf } from "@/lib/format/instant";
import { wholeRecordQuery } from "../api/messages";
import { isAbsent, oneLine } from "../bytes";
import { download, fileName, isCut } from "../wholeRecord";
import classes from "./MessagePanel.module.css";
import { RecordPart } from "./RecordPart";

interface Props {
  message: Message;
  clusterId: string;
  topic: string;
  onClose: () => void;
}

/** All of one record: place, time, sizes, key and value in several forms, headers. */
export function MessagePanel({ message, clusterId, topic, onClose }: Props): ReactElement {
  const [whole, setWhole] = useState(false);
  const query = useQuery({ ...wholeRecordQuery(clusterId, topic, message), enabled: whole });
  const record = query.data ?? message;
  const parts = {
    // A record beyond what is read whole stays cut.
    onLoad: isCut(record) && !query.data ? () => setWhole(true) : undefined,
    loading: query.isFetching,
  };
  const keep = (part: string) => (content: RecordBytes) => {
    download(fileName(topic, record, part, content), content);
  };
  return (
    <aside className={classes.root} aria-label="Message">
      <div className={classes.head}>
        <strong>
          {topic} {message.partition} @ {message.offset}
        </strong>
        <CloseButton size="sm" aria-label="Close the message" onClick={onClose} />
      </div>
      <dl className={classes.facts}>
        <dt>Time</dt>
        <dd>
          <RecordTime milliseconds={message.timestamp_ms} />
          {message.timestamp_type === "LogAppendTime" && " (when it was appended)"}
        </dd>
        <dt>Sizes</dt>
        <dd>
          key {sizeWords(message.key)}, value {sizeWords(message.value)}, all{" "}
          {formatBytes(message.size)}
        </dd>
      </dl>
      {query.error && <ErrorPanel error={query.error} what="The rest could not be read" />}
      <RecordPart
        title="Key"
        content={record.key}
        nothing="This record has no key."
        {...parts}
        onLoad={record.key?.truncated ? parts.onLoad : undefined}
        onDownload={keep("key")}
      />
      <RecordPart
        title="Value"
        content={record.value}
        nothing="No value: a tombstone, which removes the key when the topic is compacted."
        {...parts}
        onLoad={record.value?.truncated ? parts.onLoad : undefined}
        onDownload={keep("value")}
      />
      <Headers headers={record.headers} />
    </aside>
  );
}

const sizeWords = (content: RecordBytes | null): string =>
  content === null ? "none" : formatBytes(content.size);

/** A record's time. A producer may have written a number that no calendar has. */
function RecordTime({ milliseconds }: { milliseconds: string | null }): ReactElement {
  if (milliseconds === null) return <>none</>;
  const instant = instantOf(milliseconds);
  if (instant === null) return <>{formatCount(milliseconds)} ms, which is in no calendar</>;
  return <Instant at={instant} />;
}

/** The headers, behind the value, so that long ones hide nothing. Names may repeat. */
function Headers({ headers }: { headers: Header[] }): ReactElement | null {
  if (headers.length === 0) return null;
  return (
    <section>
      <h3 className={classes.title}>Headers</h3>
      <dl className={classes.headers} tabIndex={0} aria-label="Headers">
        {headers.map(({ key, value }, index) => (
          // Their order matters.
          <div key={`${String(index)} ${key}`}>
            <dt>
              <bdi>
                <Escaped text={key} />
              </bdi>
            </dt>
            <dd data-null={isAbsent(value) || undefined}>
              <bdi>{oneLine(value)}</bdi>
            </dd>
          </div>
        ))}
      </dl>
    </section>
  );
}
