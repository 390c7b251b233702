import { CheckIcon } from "@mantine/core";
import type { ReactElement } from "react";
import { Name } from "./Name";

interface Props {
  option: { value: string; label?: string };
  checked?: boolean;
}

/** An option of a list that opens below a field. All such lists draw their options with it. */
export function OptionName({ option, checked }: Props): ReactElement {
  return (
    <>
      {checked && <CheckIcon size={10} aria-hidden="true" />}
      <span>
        <Name text={option.label ?? option.value} />
      </span>
    </>
  );
}
