import { Switch, TextInput } from "@mantine/core";
import { IconSearch } from "@tabler/icons-react";
import type { ReactElement } from "react";
import type { Topic } from "@/lib/api/types";
import { useFind, useView } from "@/lib/useView";
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
  const { typed, type, needle } = useFind();
  const [only, setOnly] = useView("only");
  const onlySet = only === "set";
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
          value={typed}
          onChange={(event) => {
            type(event.currentTarget.value);
          }}
        />
        <Switch
          size="xs"
          label="Only what this topic sets"
          checked={onlySet}
          onChange={(event) => {
            setOnly(event.currentTarget.checked ? "set" : undefined);
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
