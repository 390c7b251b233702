"""The files that the local driver keeps for a broker, in the folder `<cluster id>/slot-<n>/`.

| File | What |
|---|---|
| `broker.toml` | the settings that it was last started with, secrets among them; mode 0600 |
| `ready` | its standard output, which holds the ready line once it serves |
| `state.json` | which process it is: `{"v": 1, "pid": int, "started": str}` |
| `broker.log`, `.1`, … | its standard error, rotated by size |

Settings and state are replaced as a whole, so a keeper that is killed in between leaves either the
old file or the new one.
"""

from __future__ import annotations

import json
import os
import re
from dataclasses import dataclass
from pathlib import Path

from brokers.settings.writing import overrides_of
from provisioning.cell.drivers.base import Endpoints, Settings
from provisioning.cell.drivers.process import Identity

STATE_VERSION = 1
READY = re.compile(r"ready bootstrap=(\S+) metrics=(\S+)(?: link=(\S+))?(?: .*)?\n")
SLOT = re.compile(r"slot-(\d{1,9})")
# The ids that the cell's metadata store accepts, without `.` and `..`, which would leave the
# folder.
CLUSTER_ID = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,127}")


@dataclass(frozen=True)
class SlotFiles:
    """The files of one broker, all in `folder`."""

    folder: Path

    @classmethod
    def of(cls, run: Path, cluster_id: str, slot: int) -> SlotFiles:
        """The files of a slot. Raises `ValueError` where the cluster's id could leave `run`."""
        return cls(cluster_folder(run, cluster_id) / f"slot-{slot}")

    @property
    def settings(self) -> Path:
        """The path of the settings file."""
        return self.folder / "broker.toml"

    @property
    def output(self) -> Path:
        """The path of the file that receives the broker's standard output."""
        return self.folder / "ready"

    @property
    def log(self) -> Path:
        """The path of the file that receives the broker's standard error."""
        return self.folder / "broker.log"

    @property
    def state(self) -> Path:
        """The path of the file that says which process the broker is."""
        return self.folder / "state.json"

    def write_settings(self, settings: Settings) -> None:
        """Creates the folder and writes the settings file. Raises `OSError`."""
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        lines = (line.replace("=", " = ", 1) for line in overrides_of(settings))
        replace_file(self.settings, "".join(f"{line}\n" for line in lines))

    def write_state(self, identity: Identity) -> None:
        """Records which process the broker is. Raises `OSError`."""
        state = {"v": STATE_VERSION, "pid": identity.pid, "started": identity.started}
        replace_file(self.state, json.dumps(state) + "\n")

    def read_state(self) -> Identity | None:
        """The process that was recorded last; None where there is none or it cannot be read."""
        try:
            state = json.loads(self.state.read_text(encoding="utf-8"))
            if state["v"] == STATE_VERSION:
                return Identity(int(state["pid"]), str(state["started"]))
        except (OSError, ValueError, KeyError, TypeError):
            pass
        return None

    def read_endpoints(self) -> Endpoints | None:
        """The endpoints from the broker's ready line; None until it has written one."""
        try:
            text = self.output.read_text(encoding="utf-8", errors="replace")
        except OSError:
            return None
        match = READY.match(text)
        if match is None:
            return None
        kafka, metrics, link = ("" if part in {"-", None} else part for part in match.groups())
        return Endpoints(kafka=kafka, metrics=metrics, link=link)


def cluster_folder(run: Path, cluster_id: str) -> Path:
    """The folder of a cluster. Raises `ValueError` where its id could leave `run`."""
    if not CLUSTER_ID.fullmatch(cluster_id):
        message = f"{cluster_id!r} is not a valid cluster id"
        raise ValueError(message)
    return run / cluster_id


def slots_in(run: Path) -> list[tuple[str, int]]:
    """All (cluster id, slot) pairs that have a folder below `run`."""
    slots = []
    for folder in sorted(run.glob("*/slot-*")):
        match = SLOT.fullmatch(folder.name)
        if match and CLUSTER_ID.fullmatch(folder.parent.name):
            slots.append((folder.parent.name, int(match.group(1))))
    return slots


def replace_file(path: Path, text: str) -> None:
    """Writes a private file (mode 0600) and moves it over the old one. Raises `OSError`."""
    new = path.with_name(f".{path.name}.new")
    new.unlink(missing_ok=True)
    with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(text)
    new.replace(path)
