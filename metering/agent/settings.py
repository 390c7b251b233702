"""The agent's settings: one TOML file. `docs/reference/agent-settings.md` is made from these."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from brokers.config import toml_value
from brokers.locations import Location
from brokers.sections import SettingsError, parse_toml, read_section, refuse_unknown

Value = TypeVar("Value")

LOG_LEVELS = ("debug", "info", "warning", "error")


def setting(doc: str, default: Value | None = None) -> Value:
    """A setting's line in the reference, and its default where it has one."""
    metadata = {"doc": doc}
    if default is None:
        field: Value = dataclasses.field(metadata=metadata)
        return field
    return dataclasses.field(default=default, metadata=metadata)


@dataclass(frozen=True, kw_only=True)
class CellSettings:
    """The cell that is metered."""

    id: str = setting("Name of the cell, which is part of every key.")
    metadata: Location = setting("The cell's metadata store: a path, `etcd://…` or `etcds://…`.")
    dfs: Path = setting("Folder of the shared file system.")
    bucket: Location = setting("The object store: a folder or `s3://…`.")


@dataclass(frozen=True, kw_only=True)
class UsageSettings:
    """Where usage goes."""

    location: Location = setting(
        "Usage files: a folder or `s3://…`; all agents of the cell share it."
    )
    progress: Path = setting(
        "Folder of what is metered already, on shared storage; all agents of the cell share it."
    )


@dataclass(frozen=True, kw_only=True)
class LoopSettings:
    """The agent itself."""

    name: str = setting("Its name in manifests, for people.", "agent")
    metrics: str = setting(
        "`host:port` for `/metrics` and `/healthz`. Port 0 takes a free one, which the ready line "
        "names.",
        "127.0.0.1:0",
    )
    period_ms: int = setting("Between the starts of two passes, in ms.", 15_000)
    agents: int = setting("In how many shares the cell's clusters are divided.", 1)
    agent_index: int = setting("Which share this agent takes, from 0 on.", 0)
    window_minutes: int = setting(
        "Time is measured in windows of so many minutes, a whole part of an hour; of clusters that "
        "sleep by the hour.",
        5,
    )
    rows_max: int = setting("A usage file has about so many rows at most.", 500_000)
    log_level: str = setting("`debug`, `info`, `warning` or `error`. To standard error.", "info")


@dataclass(frozen=True, kw_only=True)
class AgentSettings:
    """All settings."""

    cell: CellSettings
    usage: UsageSettings
    agent: LoopSettings


SECTIONS: Mapping[str, type] = {
    "cell": CellSettings,
    "usage": UsageSettings,
    "agent": LoopSettings,
}


def load_settings(path: str | Path, overrides: Sequence[str] = ()) -> AgentSettings:
    """Reads a settings file. Raises `SettingsError`, which names the file and the setting.

    `overrides` are `section.setting=value`, and win over the file.
    """
    try:
        return parse_settings(Path(path).read_text(encoding="utf-8"), overrides)
    except (OSError, UnicodeDecodeError, SettingsError) as error:
        message = f"{path}: {error}"
        raise SettingsError(message) from error


def parse_settings(text: str, overrides: Sequence[str] = ()) -> AgentSettings:
    """Settings from TOML. Relative paths are taken from the working directory."""
    given = parse_toml(text, overrides)
    refuse_unknown(given, set(SECTIONS), "")
    settings = AgentSettings(
        cell=CellSettings(**read_section(CellSettings, given, "cell")),
        usage=UsageSettings(**read_section(UsageSettings, given, "usage")),
        agent=LoopSettings(**read_section(LoopSettings, given, "agent")),
    )
    _check(settings.agent)
    return settings


def settings_toml(settings: AgentSettings) -> str:
    """The settings as TOML, for whoever starts an agent."""
    lines = []
    for name in SECTIONS:
        section = getattr(settings, name)
        fields = [each.name for each in dataclasses.fields(section)]
        lines.append(f"[{name}]")
        lines += [f"{each} = {toml_value(getattr(section, each))}" for each in fields]
        lines.append("")
    return "\n".join(lines)


def _check(loop: LoopSettings) -> None:
    for name in ("period_ms", "agents", "window_minutes", "rows_max"):
        if getattr(loop, name) < 1:
            message = f"agent.{name} is {getattr(loop, name)}, want 1 or more"
            raise SettingsError(message)
    if not 0 <= loop.agent_index < loop.agents:
        message = f"agent.agent_index is {loop.agent_index}, want 0 to {loop.agents - 1}"
        raise SettingsError(message)
    if 60 % loop.window_minutes:
        message = f"agent.window_minutes is {loop.window_minutes}, want a whole part of 60"
        raise SettingsError(message)
    if loop.log_level not in LOG_LEVELS:
        message = f"agent.log_level is {loop.log_level!r}, want one of {', '.join(LOG_LEVELS)}"
        raise SettingsError(message)
