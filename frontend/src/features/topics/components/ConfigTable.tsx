import { Switch, TextInput } from "@mantine/core";
import { IconSearch } from "@tabler/icons-react";
import { type ReactElement, useState } from "react";
import type { Topic } from "@/lib/api/types";
import { isOwn } from "../configs";
import { ConfigRow } from "./ConfigRow";
import classes from "./ConfigTable.module.css";

interface Props {
  clusterId: string;
  topic: Topic;
  refused: string | undefined;
}

/** The configs of a topic: value, default, source and description. They are edited in place. */
export function ConfigTable({ clusterId, topic, refused }: Props): ReactElement {
  const [search, setSearch] = useState("");
  const [onlySet, setOnlySet] = useState(false);
  const needle = search.trim().toLowerCase();
  const shown = (topic.config_details ?? []).filter(
    (config) =>
      (!onlySet || isOwn(config.source)) &&
      (config.name.includes(needle) || config.documentation.toLowerCase().includes(needle)),
  );
  return (
    <>
      <div className={classes.tools}>
        <TextInput
          size="xs"
          w={280}
          leftSection={<IconSearch size={14} />}
          placeholder="Find by name or meaning"
          aria-label="Find a config"
          value={search}
          onChange={(event) => {
            setSearch(event.currentTarget.value);
          }}
        />
        <Switch
          size="xs"
          label="Only what this topic sets"
          checked={onlySet}
          onChange={(event) => {
            setOnlySet(event.currentTarget.checked);
          }}
        />
      </div>
      <div className={classes.list} role="list" aria-label="Configs">
        {shown.map((config) => (
          <ConfigRow
            key={config.name}
            clusterId={clusterId}
            topic={topic.name}
            config={config}
            refused={refused}
          />
        ))}
        {shown.length === 0 && <p className={classes.none}>No config matches.</p>}
      </div>
    </>
  );
}
