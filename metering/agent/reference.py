"""Generates `docs/reference/agent-settings.md` from the settings themselves.

`python -m metering.agent.reference` prints the page; a test compares it with the file.
"""

from __future__ import annotations

import sys

from brokers.settings.fields import settings_of
from brokers.settings.reference import section_reference
from metering.agent.settings import AgentSettings

_HEAD = """\
# Metering agent settings

`python -m metering.agent --config agent.toml` reads one TOML file. What has no default must be set.
An unknown setting, a wrong type or a value that makes no sense ends the start with status 2 and the
name of the setting. `make up` writes the file itself, at each start.
`--set section.setting=value`, any number of times, wins over the file.

This page is made from the code: `python -m metering.agent.reference`.
"""

_TAIL = """
## What it prints

One line to standard output before its first pass: `ready metrics=<host:port> pid=<pid>`. Its log
goes to standard error.

| Exit status | Meaning |
|---|---|
| 0 | stopped on request |
| 1 | it could not start |
| 2 | settings that make no sense |

`/healthz` answers 503 with a reason while passes fail or none ends. Any number of agents may meter
the same share: usage that is in the files of several agents counts once.

## Metrics

Each has the label `cell`.

| Metric | Meaning |
|---|---|
| `freshet_metering_lag_seconds` | Time since which usage may not be recorded, of the cluster \
that is furthest behind. |
| `freshet_metering_covered_until_seconds` | The same as Unix time. |
| `freshet_metering_clusters`, `freshet_metering_clusters_failing` | Clusters of \
its share; those that could not be read, in part or whole. |
| `freshet_metering_rows_total`, `freshet_metering_file_bytes_total`, \
`freshet_metering_files_total` | What it wrote. |
| `freshet_metering_indexes_dropped_total` | Lane indexes that it removed. |
| `freshet_metering_errors_total` | What went wrong, by `kind`: `lane`, `gap`, `cluster`, \
`progress`, `drop`, `pass`. |
| `freshet_metering_pass_seconds` | How long the last pass took. |
"""


def agent_reference() -> str:
    """The text of the page, with a table for each section."""
    sections = settings_of(AgentSettings).values()
    return "".join(
        [_HEAD, *(section_reference(section.name, section.kind) for section in sections), _TAIL]
    )


if __name__ == "__main__":
    sys.stdout.write(agent_reference())
