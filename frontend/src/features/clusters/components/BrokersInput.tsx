import { NumberInput, type NumberInputProps } from "@mantine/core";
import type { ReactElement } from "react";

/** The most brokers of a cluster, as `ScaleInputRequest` of the API has it. */
export const BROKERS_MAX = 16;

/** Why a cluster cannot have so many brokers; null where it can. */
export function brokersProblem(count: number | string): string | null {
  const fits = Number.isInteger(count) && Number(count) >= 1 && Number(count) <= BROKERS_MAX;
  return fits ? null : `From 1 to ${String(BROKERS_MAX)}`;
}

/** The field for the number of a cluster's brokers. */
export function BrokersInput(props: NumberInputProps): ReactElement {
  return (
    <NumberInput
      label="Brokers"
      description="They share its load while it is awake. If one dies, the others take over"
      min={1}
      max={BROKERS_MAX}
      clampBehavior="none"
      allowDecimal={false}
      {...props}
    />
  );
}
