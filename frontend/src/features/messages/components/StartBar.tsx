import { Group, SegmentedControl, Select, TextInput } from "@mantine/core";
import type { ReactElement } from "react";
import { InstantInput } from "@/components/InstantInput";
import { WholeInput } from "@/components/WholeInput";

export type From = "newest" | "oldest" | "offset" | "timestamp" | "live";

export interface Place {
  from: From;
  partition?: number;
  /** Digits: an offset may be longer than a double holds. */
  offset?: string;
  /** In ISO 8601 and UTC. */
  timestamp?: string;
  /** A text or an expression that filters records; without it all are shown. */
  filter?: string;
}

interface Props {
  place: Place;
  partitions: number;
  onChange: (place: Place) => void;
}

const MODES: { value: From; label: string }[] = [
  { value: "newest", label: "Newest" },
  { value: "oldest", label: "Oldest" },
  { value: "offset", label: "Offset" },
  { value: "timestamp", label: "Time" },
  { value: "live", label: "Live" },
];

/** The fields of where reading begins, the partition and the filter. */
export function StartBar({ place, partitions, onChange }: Props): ReactElement {
  const numbers = Array.from({ length: partitions }, (_, number) => ({
    value: String(number),
    label: `Partition ${String(number)}`,
  }));
  return (
    <Group gap="xs">
      <SegmentedControl
        size="xs"
        aria-label="Start from"
        data={MODES}
        value={place.from}
        onChange={(from) => {
          onChange({ from: from as From, partition: place.partition, filter: place.filter });
        }}
      />
      {place.from === "offset" && (
        <WholeInput
          size="xs"
          width={150}
          label="Offset"
          value={place.offset ?? "0"}
          onChange={(offset) => {
            onChange({ ...place, offset });
          }}
        />
      )}
      {place.from === "timestamp" && (
        <InstantInput
          size="xs"
          label="Time"
          value={place.timestamp}
          onChange={(timestamp) => {
            onChange({ ...place, timestamp });
          }}
        />
      )}
      {place.from !== "live" && (
        <Select
          size="xs"
          w={140}
          aria-label="Partition"
          data={[{ value: "", label: "All partitions" }, ...numbers]}
          allowDeselect={false}
          value={place.partition === undefined ? "" : String(place.partition)}
          onChange={(picked) => {
            onChange({ ...place, partition: picked ? Number(picked) : undefined });
          }}
        />
      )}
      <FilterField
        value={place.filter}
        onChange={(filter) => {
          onChange({ ...place, filter });
        }}
      />
    </Group>
  );
}

const FILTER_HELP =
  "A text that key, value or headers contain, or an expression: " +
  'value.total > 100 and (key ~ eu- or headers.source = "web")';

interface FilterProps {
  value: string | undefined;
  onChange: (value: string | undefined) => void;
}

/**
 * The field of the filter. It takes effect with Enter or when it is left, since every change
 * begins a new reading.
 */
function FilterField({ value, onChange }: FilterProps): ReactElement {
  const take = (typed: string): void => {
    const entered = typed.trim() || undefined;
    if (entered !== value) onChange(entered);
  };
  return (
    <TextInput
      // A new value in the address replaces the typed text.
      key={value ?? ""}
      size="xs"
      w={260}
      aria-label="Filter"
      placeholder="Filter: a text, or value.total > 100"
      title={FILTER_HELP}
      defaultValue={value ?? ""}
      maxLength={1000}
      autoComplete="off"
      spellCheck={false}
      onBlur={(event) => {
        take(event.currentTarget.value);
      }}
      onKeyDown={(event) => {
        if (event.key === "Enter") take(event.currentTarget.value);
      }}
    />
  );
}
