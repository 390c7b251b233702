import { TextInput } from "@mantine/core";
import { IconSearch } from "@tabler/icons-react";
import { Link } from "@tanstack/react-router";
import { type ReactElement, useMemo } from "react";
import { type Column, DataTable } from "@/components/DataTable";
import type { Topic } from "@/lib/api/types";
import { formatCount } from "@/lib/format/bytes";
import { useFind } from "@/lib/useView";
import { readableConfig } from "../configs";

interface Props {
  clusterId: string;
  topics: readonly Topic[] | undefined;
}

const FILTER_FROM = 8;

function retention(topic: Topic): string {
  const value = topic.configs["retention.ms"] ?? null;
  return readableConfig("retention.ms", value) || (value ?? "default");
}

/** The topics of a cluster. They can be searched by name and sorted by any column. */
export function TopicTable({ clusterId, topics }: Props): ReactElement {
  const { typed, type, needle } = useFind();
  const shown = useMemo(
    () => topics?.filter((topic) => topic.name.toLowerCase().includes(needle)),
    [topics, needle],
  );
  const columns = useMemo(() => columnsOf(clusterId), [clusterId]);
  return (
    <>
      {(topics?.length ?? 0) >= FILTER_FROM && (
        <TextInput
          mb="sm"
          maw={320}
          size="xs"
          leftSection={<IconSearch size={14} />}
          placeholder="Find a topic"
          aria-label="Find a topic"
          value={typed}
          onChange={(event) => {
            type(event.currentTarget.value);
          }}
        />
      )}
      <DataTable
        label="Topics"
        columns={columns}
        rows={shown}
        rowId={(topic) => topic.name}
        initialSort={[{ id: "name", desc: false }]}
      />
    </>
  );
}

function columnsOf(clusterId: string): Column<Topic>[] {
  return [
    {
      id: "name",
      header: "Name",
      sortBy: (topic) => topic.name,
      cell: (topic) => (
        <Link
          to="/clusters/$clusterId/topics/$topic"
          params={{ clusterId, topic: topic.name }}
          style={{ fontFamily: "var(--mantine-font-family-monospace)" }}
        >
          {topic.name}
        </Link>
      ),
    },
    {
      id: "partitions",
      header: "Partitions",
      align: "right",
      width: 110,
      sortBy: (topic) => topic.partitions,
      cell: (topic) => formatCount(topic.partitions),
    },
    {
      id: "retention",
      header: "Retention",
      width: 150,
      cell: retention,
    },
    {
      id: "cleanup",
      header: "Cleanup",
      width: 140,
      cell: (topic) => topic.configs["cleanup.policy"] ?? "delete",
    },
  ];
}
