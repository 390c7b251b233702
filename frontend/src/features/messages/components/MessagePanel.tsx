import { CloseButton, SegmentedControl } from "@mantine/core";
import { type ReactElement, useState } from "react";
import { CopyButton } from "@/components/CopyButton";
import type { Header, Message, RecordBytes } from "@/lib/api/types";
import { formatBytes } from "@/lib/format/bytes";
import { formatInstant } from "@/lib/format/time";
import { bytesOf, hexDump, oneLine, prettyJson } from "../bytes";
import classes from "./MessagePanel.module.css";

type View = "json" | "text" | "hex";

interface Props {
  message: Message;
  topic: string;
  onClose: () => void;
}

/** All of one record: place, time, sizes, headers, key and value as JSON, text or hex. */
export function MessagePanel({ message, topic, onClose }: Props): ReactElement {
  const time = message.timestamp_ms;
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
          {time === null ? "none" : formatInstant(new Date(time))}
          {message.timestamp_type === "LogAppendTime" && " (when it was appended)"}
        </dd>
        <dt>Sizes</dt>
        <dd>
          key {sizeWords(message.key)}, value {sizeWords(message.value)}, all{" "}
          {formatBytes(message.size)}
        </dd>
      </dl>
      <Headers headers={message.headers} />
      <Content title="Key" content={message.key} nothing="This record has no key." />
      <Content
        title="Value"
        content={message.value}
        nothing="No value: a tombstone, which removes the key when the topic is compacted."
      />
    </aside>
  );
}

const sizeWords = (content: RecordBytes | null): string =>
  content === null ? "none" : formatBytes(content.size);

function Headers({ headers }: { headers: Header[] }): ReactElement | null {
  if (headers.length === 0) return null;
  return (
    <section>
      <h3 className={classes.title}>Headers</h3>
      <dl className={classes.headers}>
        {headers.map(({ key, value }, index) => (
          // Names of headers may repeat, and their order matters.
          <div key={`${String(index)} ${key}`}>
            <dt>{key}</dt>
            <dd>{oneLine(value)}</dd>
          </div>
        ))}
      </dl>
    </section>
  );
}

const LABELS: Record<View, string> = { json: "JSON", text: "Text", hex: "Hex" };

interface ContentProps {
  title: string;
  content: RecordBytes | null;
  nothing: string;
}

function Content({ title, content, nothing }: ContentProps): ReactElement {
  const json = prettyJson(content);
  const best: View = json !== null ? "json" : content?.text == null ? "hex" : "text";
  const [chosen, setChosen] = useState<View>();
  if (content === null) {
    return (
      <section>
        <h3 className={classes.title}>{title}</h3>
        <p className={classes.nothing}>{nothing}</p>
      </section>
    );
  }
  const views: View[] = ["hex"];
  if (content.text !== null) views.unshift("text");
  if (json !== null) views.unshift("json");
  const view = chosen && views.includes(chosen) ? chosen : best;
  const shown = { json: json ?? "", text: content.text ?? "", hex: "" }[view];
  const code = view === "hex" ? hexDump(bytesOf(content)) : shown;
  return (
    <section>
      <div className={classes.bar}>
        <h3 className={classes.title}>{title}</h3>
        <span className={classes.tools}>
          <SegmentedControl
            size="xs"
            aria-label={`Show the ${title.toLowerCase()} as`}
            value={view}
            onChange={(next) => {
              setChosen(next as View);
            }}
            data={views.map((value) => ({ value, label: LABELS[value] }))}
          />
          <CopyButton value={code} what={`the ${title.toLowerCase()}`} />
        </span>
      </div>
      <pre className={classes.code} tabIndex={0} data-view={view}>
        {code}
      </pre>
      {content.truncated && (
        <p className={classes.nothing}>The first 64 KiB of {formatBytes(content.size)}.</p>
      )}
    </section>
  );
}
