import { Button, SegmentedControl, Tooltip } from "@mantine/core";
import { IconX } from "@tabler/icons-react";
import type { ReactElement } from "react";
import { formatWindow } from "@/lib/format/utc";
import { DEFAULT_RANGE, type RangeChoice, type RangeName, RANGES, resolveRange } from "../ranges";

interface Props {
  choice: RangeChoice;
  onChange: (choice: RangeChoice) => void;
}

/** The control of the time range. It also shows a range that was selected in a chart. */
export function RangeControl({ choice, onChange }: Props): ReactElement {
  if (choice.from && choice.to) {
    const { from, to } = resolveRange(choice, new Date(choice.to));
    return (
      <Tooltip label={`Back to the last ${choice.range ?? DEFAULT_RANGE}`}>
        <Button
          variant="default"
          rightSection={<IconX size={13} />}
          aria-label="Leave the chosen time"
          onClick={() => {
            onChange({ range: choice.range });
          }}
        >
          {formatWindow(from, to)}
        </Button>
      </Tooltip>
    );
  }
  return (
    <SegmentedControl
      size="xs"
      aria-label="Time range"
      value={choice.range ?? DEFAULT_RANGE}
      data={RANGES.map(({ value, label, words }) => ({
        value,
        label: <span title={words}>{label}</span>,
      }))}
      onChange={(range) => {
        onChange({ range: range as RangeName });
      }}
    />
  );
}
