import { useVirtualizer } from "@tanstack/react-virtual";
import { type KeyboardEvent, type ReactElement, useRef } from "react";
import { Moment } from "@/components/Moment";
import type { Message } from "@/lib/api/types";
import { formatCount } from "@/lib/format/bytes";
import { oneLine } from "../bytes";
import classes from "./MessageGrid.module.css";

const ROW_HEIGHT = 36;

interface Props {
  messages: readonly Message[];
  selected: Message | undefined;
  onSelect: (message: Message) => void;
}

export const messageId = (message: Message): string =>
  `${String(message.partition)}-${String(message.offset)}`;

/** A virtual table of records: only the rows in view exist. Arrows move the selection. */
export function MessageGrid({ messages, selected, onSelect }: Props): ReactElement {
  const scroller = useRef<HTMLDivElement>(null);
  const rows = useVirtualizer({
    count: messages.length,
    getScrollElement: () => scroller.current,
    estimateSize: () => ROW_HEIGHT,
    overscan: 12,
  });
  const at = selected ? messages.findIndex((m) => messageId(m) === messageId(selected)) : -1;
  const move = (event: KeyboardEvent): void => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step === undefined) return;
    event.preventDefault();
    const next = Math.min(Math.max(at + step, 0), messages.length - 1);
    const message = messages[next];
    if (!message) return;
    onSelect(message);
    rows.scrollToIndex(next);
  };
  return (
    <div className={classes.root} role="grid" aria-label="Messages" aria-rowcount={messages.length}>
      <div className={classes.head} role="row">
        <span role="columnheader">Partition</span>
        <span role="columnheader">Offset</span>
        <span role="columnheader">Time</span>
        <span role="columnheader">Key</span>
        <span role="columnheader">Value</span>
      </div>
      <div ref={scroller} className={classes.scroll} tabIndex={0} onKeyDown={move} role="rowgroup">
        <div style={{ height: rows.getTotalSize(), position: "relative" }} role="presentation">
          {rows.getVirtualItems().map((item) => {
            const message = messages[item.index];
            if (!message) return null;
            return (
              <Row
                key={messageId(message)}
                message={message}
                top={item.start}
                index={item.index}
                selected={item.index === at}
                onSelect={onSelect}
              />
            );
          })}
        </div>
      </div>
    </div>
  );
}

interface RowProps {
  message: Message;
  top: number;
  index: number;
  selected: boolean;
  onSelect: (message: Message) => void;
}

function Row({ message, top, index, selected, onSelect }: RowProps): ReactElement {
  const time = message.timestamp_ms;
  return (
    <div
      className={classes.row}
      role="row"
      aria-rowindex={index + 1}
      aria-selected={selected}
      style={{ transform: `translateY(${String(top)}px)` }}
      onClick={() => {
        onSelect(message);
      }}
    >
      <span role="gridcell">{message.partition}</span>
      <span role="gridcell">{formatCount(message.offset)}</span>
      <span role="gridcell" className={classes.time}>
        <Moment at={time === null ? null : new Date(time).toISOString()} />
      </span>
      <span role="gridcell" className={classes.bytes} data-null={message.key === null || undefined}>
        {oneLine(message.key)}
      </span>
      <span
        role="gridcell"
        className={classes.bytes}
        data-null={message.value === null || undefined}
      >
        {oneLine(message.value)}
      </span>
    </div>
  );
}
