import { TextInput } from "@mantine/core";
import { type ReactElement, useState } from "react";
import { big, INT64_MAX, parseWhole } from "@/lib/format/whole";

interface Props {
  /** The name of the field, for screen readers. */
  label: string;
  size?: "xs" | "sm";
  width?: number;
  /** The digits of the number; undefined for none. */
  value: string | undefined;
  /** Called with the digits once they are typed to their end: with Enter, or on leaving. */
  onChange: (value: string) => void;
}

/**
 * A field for a whole number from 0 to 2^63 − 1, such as an offset. It takes effect with Enter or
 * when it is left, since every change of it begins a new reading.
 */
export function WholeInput({ label, size, width, value, onChange }: Props): ReactElement {
  const [wrong, setWrong] = useState(false);
  const take = (typed: string): void => {
    const digits = parseWhole(typed);
    const fits = digits !== undefined && big(digits) >= 0n && big(digits) <= INT64_MAX;
    setWrong(typed.trim() !== "" && !fits);
    if (fits && digits !== value) onChange(digits);
  };
  return (
    <TextInput
      // Another number in the address replaces what was typed.
      key={value ?? ""}
      size={size}
      w={width}
      aria-label={label}
      placeholder={label}
      inputMode="numeric"
      defaultValue={value ?? ""}
      error={wrong ? "A whole number" : undefined}
      autoComplete="off"
      onBlur={(event) => {
        take(event.currentTarget.value);
      }}
      onKeyDown={(event) => {
        if (event.key === "Enter") take(event.currentTarget.value);
      }}
    />
  );
}
