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
`[cell]` and `keeper.folder` must be set. For an unknown setting, a wrong type or an invalid value
the keeper prints the name of the setting and exits with status 2. `make up` writes the file itself
at each start. `--set section.setting=value`, which may be given several times, wins over the file.

Sizes are in bytes; the name of a time ends with its unit.

This page is made from the code: `python -m provisioning.cell.keeper.reference`.
"""

_IDLE = """
How long a cluster stays awake without clients is a setting of the cluster: `idle_timeout_s` in the
REST interface.
"""

_KUBERNETES = """
These settings apply with `driver.kind = "kubernetes"`. `driver.cell`, `driver.image` and
`driver.dfs` must be set. Quantities of resources are written as in Kubernetes.

"""

_TAIL = """
## broker

`[broker.<section>]` holds further [broker settings](broker-settings.md) for every broker of the
cell, such as `[broker.cache]` with `hot_bytes`. The keeper itself sets `storage`, `listener`,
`security` and `broker`.

## What it prints

The keeper prints one line to standard output once it keeps the cell:
`ready metrics=<host:port> pid=<pid>`. Its log goes to standard error, and so do its brokers' lines
of the level of a warning or above, as `<cluster id>/<slot> | <line>`.

| Exit status | Meaning |
|---|---|
| 0 | stopped on request |
| 1 | it could not start, another keeper has the cell, or it lost its lease of the cell |
| 2 | invalid settings |

`/healthz` answers 503 with a reason while the metadata store or the platform fails, or samples
cannot be written to the object store. Brokers go on meanwhile.
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
