import { Button, Group } from "@mantine/core";
import { IconPlayerPause, IconPlayerPlay } from "@tabler/icons-react";
import type { ReactElement, ReactNode } from "react";
import { Empty } from "@/components/Empty";
import { formatCount } from "@/lib/format/bytes";
import { type TailState, useTail } from "../api/useTail";
import { AsleepHere } from "./AsleepHere";
import { DamagedNote } from "./DamagedNote";
import classes from "./MessageExplorer.module.css";
import { MessageSplit } from "./MessageSplit";

const WORDS: Record<TailState, string> = {
  connecting: "Connecting",
  live: "Live: new messages appear as they are written",
  paused: "Paused",
  broken: "The stream could not be opened",
  unreadable: "Ended: a message cannot be decoded here",
};

interface Props {
  clusterId: string;
  topic: string;
  asleep: boolean;
  wake: boolean;
  filter: string | undefined;
  firstStep: ReactNode;
  onWake: () => void;
}

/** Shows records as they arrive. */
export function LiveMessages(props: Props): ReactElement {
  // EventSource does not say why a stream is refused, so none is opened while the cluster sleeps.
  if (props.asleep && !props.wake) return <AsleepHere onWake={props.onWake} />;
  return <Tail {...props} />;
}

function Tail({ clusterId, topic, wake, filter, firstStep }: Props): ReactElement {
  const tail = useTail(clusterId, topic, wake, filter);
  const paused = tail.state === "paused";
  return (
    <>
      <Group gap="sm" className={classes.foot}>
        <span className={classes.live} data-state={tail.state} role="status">
          <span className={classes.dot} aria-hidden="true" />
          {WORDS[tail.state]}
          {tail.held > 0 && `, ${formatCount(tail.held)} waiting`}
          {tail.skipped > 0 && `, ${formatCount(tail.skipped)} came too fast to be shown`}
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
      <DamagedNote clusterId={clusterId} topic={topic} damaged={tail.damaged} />
      <MessageSplit
        clusterId={clusterId}
        topic={topic}
        messages={tail.messages}
        empty={<Empty title="Waiting for messages">{firstStep}</Empty>}
      />
    </>
  );
}
