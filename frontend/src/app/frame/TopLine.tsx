import { ActionIcon, Kbd, Popover, Stack, UnstyledButton } from "@mantine/core";
import { spotlight } from "@mantine/spotlight";
import { IconHelp, IconSearch } from "@tabler/icons-react";
import type { ReactElement } from "react";
import { AlertMark } from "./AlertMark";
import { Crumbs } from "./Crumbs";
import { IncidentMark } from "./IncidentMark";
import { TimeRange } from "./TimeRange";
import { ZoneButton } from "./ZoneButton";
import classes from "./TopLine.module.css";

/** The line above every page: the breadcrumbs, the palette's button, help. */
export function TopLine(): ReactElement {
  return (
    <header className={classes.root}>
      <Crumbs />
      <div className={classes.tools}>
        <IncidentMark />
        <AlertMark />
        <div className={classes.range}>
          <TimeRange />
        </div>
        <ZoneButton />
        <UnstyledButton
          className={classes.search}
          onClick={spotlight.open}
          aria-keyshortcuts="Control+K"
        >
          <IconSearch size={14} aria-hidden="true" />
          <span>Jump to</span>
          <Kbd size="xs" aria-hidden="true">
            Ctrl K
          </Kbd>
        </UnstyledButton>
        <Help />
      </div>
    </header>
  );
}

const SHORTCUTS: [string, string][] = [
  ["Ctrl K", "jump to a page, a cluster, a topic"],
  ["↑ ↓", "move in the list of messages"],
  ["drag", "over a chart: look at that time"],
  ["Esc", "close the panel at the side"],
];

function Help(): ReactElement {
  return (
    <Popover position="bottom-end" width={320} shadow="md" trapFocus>
      <Popover.Target>
        <ActionIcon variant="subtle" color="gray" aria-label="Help">
          <IconHelp size={18} />
        </ActionIcon>
      </Popover.Target>
      <Popover.Dropdown>
        <Stack gap={8}>
          {SHORTCUTS.map(([key, words]) => (
            <div key={key} className={classes.shortcut}>
              <Kbd size="xs">{key}</Kbd>
              <span>{words}</span>
            </div>
          ))}
          <div className={classes.note}>
            All of the console goes through the REST interface at <code>/api/v1</code>. A key for it
            is made under Access.
          </div>
        </Stack>
      </Popover.Dropdown>
    </Popover>
  );
}
