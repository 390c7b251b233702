import { Group, Stack } from "@mantine/core";
import { type ReactElement, type ReactNode, useState } from "react";
import type { Start } from "../api/messages";
import { LiveMessages } from "./LiveMessages";
import { ReadMessages } from "./ReadMessages";
import { type Place, StartBar } from "./StartBar";

interface Props {
  clusterId: string;
  topic: string;
  partitions: number;
  /** Whether the cluster sleeps: then nothing is read until the person agrees to wake it. */
  asleep: boolean;
  place: Place;
  onPlace: (place: Place) => void;
  /** Shown for an empty topic: a first command to try. */
  firstStep: ReactNode;
  actions?: ReactNode;
}

/** The records of a topic: read from a place on, or live. */
export function MessageExplorer(props: Props): ReactElement {
  const { clusterId, topic, partitions, asleep, place, onPlace, firstStep, actions } = props;
  const [wake, setWake] = useState(false);
  const shared = {
    clusterId,
    topic,
    firstStep,
    onWake: () => {
      setWake(true);
    },
  };
  return (
    <Stack gap="sm">
      <Group justify="space-between" gap="xs">
        <StartBar place={place} partitions={partitions} onChange={onPlace} />
        {actions}
      </Group>
      {place.from === "live" ? (
        <LiveMessages {...shared} asleep={asleep} wake={wake} filter={place.filter} />
      ) : (
        <ReadMessages
          // A new place begins a new reading, in which no record is selected.
          key={JSON.stringify(place)}
          {...shared}
          start={{ ...startOf(place), filter: place.filter, wake: wake || undefined }}
        />
      )}
    </Stack>
  );
}

/** The beginning of today in UTC: a link to the place means the same instant for everybody. */
function beginningOfToday(): string {
  return new Date(new Date().setUTCHours(0, 0, 0, 0)).toISOString();
}

/** Returns the query for a place. A time that is not chosen yet means the beginning of today. */
function startOf(place: Place): Start {
  const { from, partition } = place;
  if (from === "offset") return { from, partition, offset: place.offset ?? "0" };
  if (from === "timestamp") {
    return { from, partition, timestamp: place.timestamp ?? beginningOfToday() };
  }
  return { from: from === "oldest" ? "oldest" : "newest", partition };
}
