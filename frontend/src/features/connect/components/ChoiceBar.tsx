import { Group, SegmentedControl, Select, TextInput } from "@mantine/core";
import type { ReactElement } from "react";
import type { Endpoint, ListenerName } from "@/lib/api/types";
import type { Choice } from "../connection";
import type { Connection } from "../snippets";

interface Props {
  endpoints: Endpoint[];
  topics: string[];
  connection: Connection;
  onChange: (change: Partial<Choice>) => void;
}

const NAMES: Record<ListenerName, string> = {
  SASL_PLAINTEXT: "Plain, on this machine",
  SASL_SSL: "TLS",
};

/** The fields to choose the listener and the topic of the snippets. */
export function ChoiceBar({ endpoints, topics, connection, onChange }: Props): ReactElement {
  const { listener, topic, caPath } = connection;
  return (
    <Group gap="sm" align="flex-end">
      {endpoints.length > 1 && (
        <SegmentedControl
          size="xs"
          aria-label="Endpoint"
          value={listener}
          data={endpoints.map((e) => ({ value: e.listener, label: NAMES[e.listener] }))}
          onChange={(next) => {
            onChange({ listener: next as ListenerName });
          }}
        />
      )}
      <Select
        size="xs"
        w={220}
        aria-label="Topic"
        data={topics.includes(topic) ? topics : [topic, ...topics]}
        value={topic}
        searchable
        allowDeselect={false}
        onChange={(next) => {
          if (next) onChange({ topic: next });
        }}
      />
      {listener === "SASL_SSL" && (
        <TextInput
          size="xs"
          w={260}
          aria-label="Path of ca.pem"
          leftSection="CA"
          value={caPath}
          onChange={(event) => {
            onChange({ caPath: event.currentTarget.value });
          }}
        />
      )}
    </Group>
  );
}
