import { Button, Group, SegmentedControl, Select } from "@mantine/core";
import { IconX } from "@tabler/icons-react";
import type { ReactElement } from "react";
import { Name } from "@/components/Name";
import { legible } from "@/lib/format/legible";
import { meterName, METERS } from "@/lib/format/meters";
import { type Names, principalName } from "../names";

export interface Chosen {
  by?: "cluster" | "topic" | "principal";
  cluster?: string;
  topic?: string;
  principal?: string;
  meter?: string;
  billed?: boolean;
}

interface Props {
  chosen: Chosen;
  /** The name of the chosen topic; undefined where it is not known. */
  topicName: string | undefined;
  names: Names;
  onChange: (change: Chosen) => void;
}

const GROUPS = [
  { value: "meter", label: "All together" },
  { value: "cluster", label: "Cluster" },
  { value: "topic", label: "Topic" },
  { value: "principal", label: "Credential" },
];

/** The fields of the grouping and the cluster, and the topic and credential that are chosen. */
export function UsageFilters({ chosen, topicName, names, onChange }: Props): ReactElement {
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
        data={[...names.clusters].map(([value, label]) => ({ value, label }))}
        value={chosen.cluster ?? null}
        onChange={(cluster) => {
          onChange({ cluster: cluster ?? undefined, topic: undefined });
        }}
      />
      {chosen.topic !== undefined && (
        <Only
          what={chosen.topic === "" ? "No topic" : (topicName ?? chosen.topic)}
          onLeave={() => {
            onChange({ topic: undefined });
          }}
        />
      )}
      {chosen.principal !== undefined && (
        <Only
          what={chosen.principal === "" ? "No credential" : principalName(chosen.principal, names)}
          onLeave={() => {
            onChange({ principal: undefined });
          }}
        />
      )}
    </Group>
  );
}

/** A filter that is in effect, with a button that removes it. */
function Only({ what, onLeave }: { what: string; onLeave: () => void }): ReactElement {
  return (
    <Button
      variant="default"
      rightSection={<IconX size={13} />}
      aria-label={`Leave: ${legible(what)}`}
      onClick={onLeave}
    >
      <Name text={what} />
    </Button>
  );
}

interface MeterFilterProps {
  meter: string | undefined;
  onChange: (meter: string | undefined) => void;
}

/** The field of the meter whose rows are shown. */
export function MeterFilter({ meter, onChange }: MeterFilterProps): ReactElement {
  return (
    <SegmentedControl
      size="xs"
      // On a phone it is wider than the page, and scrolls by itself.
      style={{ maxWidth: "100%", overflowX: "auto" }}
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

interface BilledFilterProps {
  billed: boolean | undefined;
  onChange: (billed: boolean | undefined) => void;
}

/** The field of whether the rows that are shown are billed. */
export function BilledFilter({ billed, onChange }: BilledFilterProps): ReactElement {
  return (
    <SegmentedControl
      size="xs"
      aria-label="Billed or not"
      value={billed === undefined ? "all" : String(billed)}
      data={[
        { value: "all", label: "Billed or not" },
        { value: "true", label: "Billed" },
        { value: "false", label: "Not billed" },
      ]}
      onChange={(value) => {
        onChange(value === "all" ? undefined : value === "true");
      }}
    />
  );
}
