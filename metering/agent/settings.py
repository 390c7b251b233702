"""The agent's settings: one TOML file. `docs/reference/agent-settings.md` is made from these."""

from __future__ import annotations

import dataclasses
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from brokers.config import toml_value

Value = TypeVar("Value")

LOG_LEVELS = ("debug", "info", "warning", "error")


class SettingsError(Exception):
    """Settings that make no sense; the text names the setting."""


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
    metadata: Path = setting("File of the cell's SQLite metadata store.")
    dfs: Path = setting("Folder of the shared file system.")
    bucket: Path = setting("Folder of the object store.")


@dataclass(frozen=True, kw_only=True)
class UsageSettings:
    """Where usage goes."""

    folder: Path = setting("Folder of usage files; all agents of the cell share it.")
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


def load_settings(path: str | Path) -> AgentSettings:
    """Reads a settings file. Raises `SettingsError`, which names the file and the setting."""
    try:
        return parse_settings(Path(path).read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, SettingsError) as error:
        message = f"{path}: {error}"
        raise SettingsError(message) from error


def parse_settings(text: str) -> AgentSettings:
    """Settings from TOML. Relative paths are taken from the working directory."""
    try:
        given = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise SettingsError(str(error)) from error
    _refuse_unknown(given, set(SECTIONS), "")
    settings = AgentSettings(
        cell=CellSettings(**_section(CellSettings, given, "cell")),
        usage=UsageSettings(**_section(UsageSettings, given, "usage")),
        agent=LoopSettings(**_section(LoopSettings, given, "agent")),
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


def _section(kind: type, given: Mapping[str, object], name: str) -> dict[str, Any]:
    table = given.get(name, {})
    if not isinstance(table, dict):
        message = f"{name} is a section"
        raise SettingsError(message)
    fields = {each.name: each for each in dataclasses.fields(kind)}
    _refuse_unknown(table, set(fields), f"{name}.")
    for each in fields.values():
        if each.default is dataclasses.MISSING and each.name not in table:
            message = f"{name}.{each.name} must be set"
            raise SettingsError(message)
    return {key: _value(value, fields[key].type, f"{name}.{key}") for key, value in table.items()}


def _value(value: object, kind: object, name: str) -> object:
    wanted: dict[object, tuple[type, Callable[[Any], object]]] = {
        "str": (str, str),
        "int": (int, int),
        "Path": (str, lambda text: Path(text).absolute()),
    }
    plain, convert = wanted[kind]
    if type(value) is not plain or value == "":
        message = f"{name} is {value!r}, want {'a path' if kind == 'Path' else kind}"
        raise SettingsError(message)
    return convert(value)


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


def _refuse_unknown(table: Mapping[str, object], known: set[str], prefix: str) -> None:
    unknown = sorted(set(table) - known)
    if unknown:
        message = f"unknown setting {prefix}{unknown[0]}"
        raise SettingsError(message)
