import { Tooltip } from "@mantine/core";
import type { ReactElement } from "react";
import type { Whole } from "@/lib/format/whole";
import { exactQuantity, formatQuantity, isTimed } from "@/lib/format/meters";

interface Props {
  meter: string;
  quantity: Whole;
  /** The length of the window of the quantity. */
  minutes: number;
}

/** Shows a meter's quantity in a window, with the exact value on hover. */
export function Quantity({ meter, quantity, minutes }: Props): ReactElement {
  const exact = exactQuantity(meter, quantity);
  const label = isTimed(meter) ? `${exact}: the mean is shown` : exact;
  return (
    <Tooltip label={label}>
      <span>{formatQuantity(meter, quantity, minutes)}</span>
    </Tooltip>
  );
}
