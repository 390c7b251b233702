import { Button, Group, Select, TextInput } from "@mantine/core";
import { notifications } from "@mantine/notifications";
import { type ReactElement, useState } from "react";
import { ErrorPanel } from "@/components/ErrorPanel";
import { GuardedButton } from "@/components/GuardedButton";
import { Prose } from "@/components/Prose";
import type { ConfigDetail } from "@/lib/api/types";
import { useUpdateConfigs } from "../api/topics";
import { configChoices, configComplaint, isOwn, readableConfig } from "../configs";
import classes from "./ConfigTable.module.css";

interface Props {
  clusterId: string;
  topic: string;
  config: ConfigDetail;
  refused: string | undefined;
}

const SOURCES: [RegExp, string][] = [
  [/TOPIC/i, "set on this topic"],
  [/DEFAULT_CONFIG|^default$/i, "default"],
  [/BROKER|CLUSTER/i, "set on the cluster"],
];

function sourceWords(source: string): string {
  return SOURCES.find(([pattern]) => pattern.test(source))?.[1] ?? source;
}

/** One config of a topic, which can be edited in place. */
export function ConfigRow({ clusterId, topic, config, refused }: Props): ReactElement {
  const [editing, setEditing] = useState(false);
  const own = isOwn(config.source);
  const readable = readableConfig(config.name, config.value);
  const fallback = readableConfig(config.name, config.default) || config.default;
  return (
    <div className={classes.row} role="listitem">
      <div>
        <div className={classes.name}>{config.name}</div>
        <p className={classes.doc}>
          <Prose text={config.documentation} />
        </p>
      </div>
      {editing ? (
        <Editor
          clusterId={clusterId}
          topic={topic}
          config={config}
          onClose={() => {
            setEditing(false);
          }}
        />
      ) : (
        <div className={`${classes.value ?? ""} ${own ? (classes.own ?? "") : ""}`}>
          {config.value ?? "–"} {readable && <span className={classes.readable}>{readable}</span>}
          <div className={classes.source}>
            {sourceWords(config.source)}
            {own && fallback !== null && `, default ${fallback}`}
          </div>
        </div>
      )}
      {!editing && (
        <GuardedButton
          refused={refused}
          variant="subtle"
          size="compact-xs"
          aria-label={`Edit ${config.name}`}
          onClick={() => {
            setEditing(true);
          }}
        >
          Edit
        </GuardedButton>
      )}
    </div>
  );
}

function Editor({
  clusterId,
  topic,
  config,
  onClose,
}: Omit<Props, "refused"> & { onClose: () => void }): ReactElement {
  const update = useUpdateConfigs(clusterId, topic);
  const [value, setValue] = useState(config.value ?? "");
  const choices = configChoices(config.name, config.default);
  const complaint = configComplaint(config.name, value, config.default);
  const save = (to: string | null): void => {
    const onSuccess = (): void => {
      notifications.show({ message: `${config.name} is changed` });
      onClose();
    };
    update.mutate({ [config.name]: to }, { onSuccess });
  };
  return (
    <form
      className={classes.editor}
      onSubmit={(event) => {
        event.preventDefault();
        if (!complaint) save(value);
      }}
      onKeyDown={(event) => {
        if (event.key === "Escape") onClose();
      }}
    >
      {choices ? (
        <Select
          size="xs"
          aria-label={`Value of ${config.name}`}
          data={[...choices]}
          value={value}
          allowDeselect={false}
          onChange={(picked) => {
            setValue(picked ?? "");
          }}
        />
      ) : (
        <TextInput
          size="xs"
          autoFocus
          aria-label={`Value of ${config.name}`}
          value={value}
          error={complaint}
          description={readableConfig(config.name, value) || undefined}
          inputWrapperOrder={["input", "description", "error"]}
          onChange={(event) => {
            setValue(event.currentTarget.value);
          }}
        />
      )}
      {update.error && <ErrorPanel error={update.error} what={`${config.name} was not changed`} />}
      <Group gap={6}>
        <Button
          type="submit"
          size="compact-xs"
          disabled={complaint !== null}
          loading={update.isPending}
        >
          Save
        </Button>
        <Button variant="default" size="compact-xs" onClick={onClose}>
          Cancel
        </Button>
        {isOwn(config.source) && (
          <Button
            variant="subtle"
            size="compact-xs"
            onClick={() => {
              save(null);
            }}
          >
            Back to the default
          </Button>
        )}
      </Group>
    </form>
  );
}
