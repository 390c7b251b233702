import { ActionIcon, CopyButton as Copy, Tooltip } from "@mantine/core";
import { IconCheck, IconCopy } from "@tabler/icons-react";
import type { ReactElement } from "react";

interface Props {
  value: string;
  /**
   * The words for what is copied, in the tooltip and for screen readers: "the bootstrap address".
   */
  what: string;
}

/** A small button that copies a text and confirms it. */
export function CopyButton({ value, what }: Props): ReactElement {
  return (
    <Copy value={value} timeout={1500}>
      {({ copied, copy }) => (
        <Tooltip label={copied ? "Copied" : `Copy ${what}`}>
          <ActionIcon
            variant="subtle"
            color="gray"
            size="sm"
            aria-label={copied ? "Copied" : `Copy ${what}`}
            onClick={copy}
          >
            {copied ? (
              <IconCheck size={15} color="var(--running)" />
            ) : (
              <IconCopy size={15} color="var(--quiet)" />
            )}
          </ActionIcon>
        </Tooltip>
      )}
    </Copy>
  );
}
