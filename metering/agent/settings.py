"""The agent's settings, one TOML file. `docs/reference/agent-settings.md` is made from these."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from brokers.locations import Location
from brokers.settings.errors import SettingsError
from brokers.settings.fields import REQUIRED, setting
from brokers.settings.reading import load_settings_file, parse_toml, read_settings
from metering.events.records import FILES_VERSION, RECORD_VERSIONS

LOG_LEVELS = ("debug", "info", "warning", "error")
# The numbers of minutes that divide an hour.
WINDOWS_MINUTES = tuple(minutes for minutes in range(1, 61) if 60 % minutes == 0)


@dataclass(frozen=True, kw_only=True)
class CellSettings:
    """The cell that is metered."""

    id: str = setting(REQUIRED, "Name of the cell, which is part of every key.")
    metadata: Location = setting(
        REQUIRED, "The cell's metadata store: a path, `etcd://…` or `etcds://…`."
    )
    dfs: Path = setting(REQUIRED, "Folder of the shared file system.")
    bucket: Location = setting(REQUIRED, "The object store: a folder or `s3://…`.")


@dataclass(frozen=True, kw_only=True)
class UsageSettings:
    """Where usage files and progress are stored."""

    location: Location = setting(
        REQUIRED, "Usage files: a folder or `s3://…`; all agents of the cell share it."
    )
    progress: Path = setting(
        REQUIRED,
        "Folder of what is metered already, on shared storage; all agents of the cell share it.",
    )


@dataclass(frozen=True, kw_only=True)
class LoopSettings:
    """The agent itself."""

    name: str = setting("agent", "Its name in manifests, for people.")
    metrics: str = setting(
        "127.0.0.1:0",
        "`host:port` for `/metrics` and `/healthz`. Port 0 takes a free one, which the ready line "
        "names.",
    )
    period_ms: int = setting(15_000, "The time between the starts of two passes, in ms.", minimum=1)
    agents: int = setting(
        1, "The number of shares into which the cell's clusters are divided.", minimum=1
    )
    agent_index: int = setting(0, "Which share this agent takes, from 0 on.", minimum=0)
    window_minutes: int = setting(
        5,
        "Time is measured in windows of this many minutes, which must divide an hour. The time of "
        "a sleeping cluster is measured by the hour.",
        choices=WINDOWS_MINUTES,
        expected="a whole part of 60",
    )
    record_version: int = setting(
        FILES_VERSION,
        "Version of the rows of lanes: 2 sums each lane file by minute, once the file has ended "
        "(the brokers' `lane.roll_after_ms`); 1 has a row for each block, which releases before "
        "version 2 read too.",
        choices=RECORD_VERSIONS,
    )
    rows_max: int = setting(500_000, "A usage file has about this many rows at most.", minimum=1)
    log_level: str = setting(
        "info", "`debug`, `info`, `warning` or `error`. To standard error.", choices=LOG_LEVELS
    )


@dataclass(frozen=True, kw_only=True)
class AgentSettings:
    """All settings."""

    cell: CellSettings
    usage: UsageSettings
    agent: LoopSettings


def load_settings(path: str | Path, overrides: Sequence[str] = ()) -> AgentSettings:
    """Reads a settings file. Raises `SettingsError`, which names the file and the setting.

    `overrides` are `section.setting=value`, and win over the file.
    """
    return load_settings_file(path, lambda text: parse_settings(text, overrides))


def parse_settings(text: str, overrides: Sequence[str] = ()) -> AgentSettings:
    """Settings from TOML. Relative paths are taken from the working directory."""
    settings = read_settings(AgentSettings, parse_toml(text, overrides))
    loop = settings.agent
    if loop.agent_index >= loop.agents:
        message = f"agent.agent_index is {loop.agent_index}, want 0 to {loop.agents - 1}"
        raise SettingsError(message)
    return settings
