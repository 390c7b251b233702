import { TextInput } from "@mantine/core";
import { type ReactElement, useState } from "react";
import { formatInstant, parseInstant, writeField, zoneName } from "@/lib/format/instant";
import { useNow } from "@/lib/useNow";
import { useZone } from "@/lib/zone";

interface Props {
  /** The name of the field; the zone is added to it. */
  label: string;
  /** Whether the label stands above the field, and is not only read aloud. */
  labelled?: boolean;
  size?: "xs" | "sm";
  /** The instant in ISO 8601 and UTC; undefined for none. */
  value: string | undefined;
  /** Called with the instant in UTC once it is typed to its end: with Enter, or on leaving. */
  onChange: (value: string | undefined) => void;
}

/**
 * A field for an instant, in the zone that the console shows. It also takes what pages show and
 * what logs have: a date with a zone of its own, or Unix milliseconds.
 */
export function InstantInput({ label, labelled, size, value, onChange }: Props): ReactElement {
  const zone = useZone();
  const now = useNow();
  const instant = value === undefined ? undefined : new Date(value);
  const name = `${label}, ${zoneName(instant ?? now, zone)}`;
  const written = instant ? writeField(instant, zone).replace("T", " ") : "";
  const [wrong, setWrong] = useState(false);
  const take = (typed: string): void => {
    if (typed === written) return;
    const read = parseInstant(typed, zone);
    setWrong(typed.trim() !== "" && read === undefined);
    if (typed.trim() === "") onChange(undefined);
    else if (read) onChange(read.toISOString());
  };
  return (
    <TextInput
      // Another instant or zone replaces what was typed.
      key={`${written} ${zone}`}
      size={size}
      w={labelled ? undefined : 190}
      {...(labelled ? { label: name } : { "aria-label": name })}
      placeholder={writeField(now, zone).replace("T", " ")}
      title={instant ? formatInstant(instant, zone) : undefined}
      defaultValue={written}
      error={wrong ? "A time like 2026-03-01 14:05:09" : undefined}
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
