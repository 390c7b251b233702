import { useMediaQuery } from "@mantine/hooks";
import { useVirtualizer } from "@tanstack/react-virtual";
import {
  type CSSProperties,
  type KeyboardEvent,
  type ReactElement,
  useEffect,
  useRef,
} from "react";
import { Moment } from "@/components/Moment";
import type { Message } from "@/lib/api/types";
import { formatCount } from "@/lib/format/bytes";
import { useNow } from "@/lib/useNow";
import { instantOf } from "@/lib/format/instant";
import { isAbsent, oneLine } from "../bytes";
import classes from "./MessageGrid.module.css";

const ROW_HEIGHT = 36;
/** On a phone a record is a card of four lines. */
const CARD_HEIGHT = 98;
/** A time of another day is shown by its date, which is longer than a distance. */
const DAY_MS = 86_400_000;

interface Props {
  messages: readonly Message[];
  selected: Message | undefined;
  onSelect: (message: Message) => void;
}

export const messageId = (message: Message): string =>
  `${String(message.partition)}-${message.offset}`;

/** A virtual table of records: only the rows in view exist. Arrows move the selection. */
export function MessageGrid({ messages, selected, onSelect }: Props): ReactElement {
  const scroller = useRef<HTMLDivElement>(null);
  const cards = useMediaQuery("(max-width: 640px)", false, { getInitialValueInEffect: false });
  const height = cards ? CARD_HEIGHT : ROW_HEIGHT;
  const rows = useVirtualizer({
    count: messages.length,
    getScrollElement: () => scroller.current,
    estimateSize: () => height,
    overscan: 12,
  });
  useEffect(() => {
    rows.measure();
  }, [rows, height]);
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
  const now = useNow().getTime();
  const dated = messages.some(
    ({ timestamp_ms: time }) => time !== null && Math.abs(now - Number(time)) >= DAY_MS,
  );
  // Head and rows are grids of their own, which widths of their contents would not align.
  const digits = Math.max(6, ...messages.map(({ offset }) => formatCount(offset).length));
  const widths = {
    "--offset": `${String(digits * 7.2 + 8)}px`,
    "--time": dated ? "200px" : "84px",
  };
  return (
    <div
      style={widths as CSSProperties}
      className={classes.root}
      role="grid"
      aria-label="Messages"
      aria-rowcount={messages.length}
    >
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
  const instant = time === null ? null : instantOf(time);
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
        {time !== null && instant === null ? `${formatCount(time)} ms` : <Moment at={instant} />}
      </span>
      <span
        role="gridcell"
        className={classes.bytes}
        data-null={isAbsent(message.key) || undefined}
      >
        <bdi>{oneLine(message.key)}</bdi>
      </span>
      <span
        role="gridcell"
        className={classes.bytes}
        data-null={isAbsent(message.value) || undefined}
      >
        <bdi>{oneLine(message.value)}</bdi>
      </span>
    </div>
  );
}
