import { Button, type ButtonProps, Tooltip } from "@mantine/core";
import type { ComponentPropsWithoutRef, ReactElement } from "react";

type Props = ButtonProps &
  Omit<ComponentPropsWithoutRef<"button">, keyof ButtonProps> & {
    /** Why the button cannot be pressed; undefined where it can. */
    refused: string | undefined;
  };

/**
 * A button that says why it cannot be pressed. Refused, it still takes the focus: who works from
 * the keyboard reads the reason as well.
 */
export function GuardedButton({ refused, onClick, ...rest }: Props): ReactElement {
  if (refused === undefined) return <Button onClick={onClick} {...rest} />;
  return (
    <Tooltip label={refused} multiline maw={280} events={{ hover: true, focus: true, touch: true }}>
      <Button
        {...rest}
        type="button"
        data-disabled
        aria-disabled="true"
        aria-description={refused}
        onClick={(event) => {
          event.preventDefault();
        }}
      />
    </Tooltip>
  );
}

/** The small button at the end of a table's row. Its label names the row. */
export function RowButton(props: Props & { "aria-label": string }): ReactElement {
  return <GuardedButton variant="subtle" color="gray" size="compact-xs" {...props} />;
}
