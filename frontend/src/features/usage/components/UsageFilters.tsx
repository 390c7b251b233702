import { Button, Group, SegmentedControl, Select } from "@mantine/core";
import { IconX } from "@tabler/icons-react";
import type { ReactElement } from "react";
import { meterName, METERS } from "@/lib/format/meters";

export interface Chosen {
  by?: "cluster" | "topic" | "principal";
  cluster?: string;
  topic?: string;
  meter?: string;
}

interface Props {
  chosen: Chosen;
  clusters: ReadonlyMap<string, string>;
  onChange: (change: Chosen) => void;
}

const GROUPS = [
  { value: "meter", label: "All together" },
  { value: "cluster", label: "Cluster" },
  { value: "topic", label: "Topic" },
  { value: "principal", label: "Credential" },
];

/** By what the charts are split, and of which cluster. */
export function UsageFilters({ chosen, clusters, onChange }: Props): ReactElement {
  return (
    <Group gap="sm" mb="md">
      <SegmentedControl
        size="xs"
        aria-label="Group by"
        value={chosen.by ?? "meter"}
        data={GROUPS}
        onChange={(by) => {
          onChange({ by: by === "meter" ? undefined : (by as Chosen["by"]) });
        }}
      />
      <Select
        size="xs"
        w={220}
        aria-label="Cluster"
        placeholder="All clusters"
        clearable
        searchable
        data={[...clusters].map(([value, label]) => ({ value, label }))}
        value={chosen.cluster ?? null}
        onChange={(cluster) => {
          onChange({ cluster: cluster ?? undefined, topic: undefined });
        }}
      />
      {chosen.topic !== undefined && (
        <Button
          variant="default"
          rightSection={<IconX size={13} />}
          onClick={() => {
            onChange({ topic: undefined });
          }}
        >
          One topic
        </Button>
      )}
    </Group>
  );
}

interface MeterFilterProps {
  meter: string | undefined;
  onChange: (meter: string | undefined) => void;
}

/** Of which meter the rows are shown. */
export function MeterFilter({ meter, onChange }: MeterFilterProps): ReactElement {
  return (
    <SegmentedControl
      size="xs"
      aria-label="Meter"
      value={meter ?? "all"}
      data={[
        { value: "all", label: "All" },
        ...METERS.map((value) => ({ value, label: meterName(value) })),
      ]}
      onChange={(value) => {
        onChange(value === "all" ? undefined : value);
      }}
    />
  );
}
