"""`docs/reference/keeper-settings.md`, made from the settings themselves.

`python -m provisioning.cell.keeper.reference` prints the page; a test compares it with the file.
"""

from __future__ import annotations

import sys

from brokers.settings.reference import section_reference, settings_table
from provisioning.cell.keeper.kubernetes import KubernetesSettings
from provisioning.cell.keeper.settings import CellSettings, DriverSettings, LoopSettings

_HEAD = """\
# Keeper settings

`python -m provisioning.cell.keeper --config keeper.toml` reads one TOML file. Only the settings of
`[cell]` and `keeper.folder` must be set. An unknown setting, a wrong type or a value that makes no
sense ends the start with status 2 and the name of the setting. `make up` writes the file itself, at
each start. `--set section.setting=value`, any number of times, wins over the file.

Sizes are in bytes; the name of a time says its unit.

This page is made from the code: `python -m provisioning.cell.keeper.reference`.
"""

_IDLE = """
How long a cluster waits without clients until it sleeps is its own setting, `idle_timeout_s` in the
REST interface.
"""

_KUBERNETES = """
With `driver.kind = "kubernetes"`. `driver.cell`, `driver.image` and `driver.dfs` must be set; a
quantity is written as Kubernetes writes it.

"""

_TAIL = """
## broker

`[broker.<section>]` holds further [broker settings](broker-settings.md) for every broker of the
cell, such as `[broker.cache]` with `hot_bytes`. The keeper itself sets `storage`, `listener`,
`security` and `broker`.

## What it prints

One line to standard output once it keeps the cell: `ready metrics=<host:port> pid=<pid>`. Its log,
and its brokers' lines from the level of a warning on, as `<cluster id>/<slot> | <line>`, go to
standard error.

| Exit status | Meaning |
|---|---|
| 0 | stopped on request |
| 1 | it could not start, another keeper has the cell, or its lease of the cell is lost |
| 2 | settings that make no sense |

`/healthz` answers 503 with a reason while the metadata store fails: brokers go on meanwhile.
"""


def keeper_reference() -> str:
    """The page, with a table for each section and each kind of driver."""
    parts = [
        _HEAD,
        section_reference("cell", CellSettings),
        section_reference("keeper", LoopSettings),
        _IDLE,
        section_reference("driver", DriverSettings),
        _KUBERNETES,
        settings_table("driver", KubernetesSettings),
        _TAIL,
    ]
    return "".join(parts)


if __name__ == "__main__":
    sys.stdout.write(keeper_reference())
