"""The keeper's settings: one TOML file. `docs/reference/keeper-settings.md` describes each."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from brokers.config import toml_value
from brokers.locations import Location
from brokers.sections import SettingsError, parse_toml, read_section, refuse_unknown
from provisioning.cell.keeper import kubernetes
from provisioning.cell.keeper.kubernetes import KubernetesSettings

Settings = Mapping[str, Mapping[str, object]]

# Settings of brokers that the keeper decides itself.
OWN = {"storage", "listener", "security", "broker"}


@dataclass(frozen=True)
class CellSettings:
    """Where the cell's data lies. Must be set."""

    metadata: Location
    dfs: Path
    bucket: Location
    secret: Path


@dataclass(frozen=True)
class LoopSettings:
    """The keeper itself. Times in milliseconds."""

    folder: Path
    metrics: str = "127.0.0.1:0"
    standby: bool = True
    lease_ttl_s: int = 15
    stop_brokers_on_exit: bool = False
    stop_timeout_ms: int = 15_000
    scrape_interval_ms: int = 1_000
    scrape_timeout_ms: int = 2_000
    sample_interval_ms: int = 5_000
    sample_timeout_ms: int = 5_000
    connections_interval_ms: int = 5_000
    stopping_grace_ms: int = 100
    awake_min_ms: int = 3_000
    retry_failed_ms: int = 10_000
    failures_max: int = 5
    unanswered_max: int = 15
    unhealthy_percent_max: int = 20
    unhealthy_max: int = 50
    unhealthy_min: int = 3
    hold_after_ms: int = 10_000
    release_after_ms: int = 60_000
    etcd_compaction_interval_ms: int = 3_600_000
    etcd_quota_bytes: int = 2 * 1024**3
    log_level: str = "info"


@dataclass(frozen=True)
class DriverSettings:
    """The driver of local processes. Times in milliseconds, sizes in bytes."""

    kind: str = "local"
    start_timeout_ms: int = 120_000
    stop_timeout_ms: int = 30_000
    stop_timeout_awaited_ms: int = 2_000
    backoff_first_ms: int = 100
    backoff_max_ms: int = 30_000
    backoff_served_max_ms: int = 250
    backoff_quiet_ms: int = 5_000
    log_bytes_max: int = 16 * 1024 * 1024
    log_files: int = 3


@dataclass(frozen=True)
class KeeperSettings:
    """All settings. `broker`: further settings of every broker, by section."""

    cell: CellSettings
    keeper: LoopSettings
    driver: DriverSettings | KubernetesSettings = field(default_factory=DriverSettings)
    broker: Settings = field(default_factory=dict)


def load_settings(path: str | Path, overrides: Sequence[str] = ()) -> KeeperSettings:
    """Reads a settings file. Raises `SettingsError`, which names the file and the setting.

    `overrides` are `section.setting=value`, and win over the file.
    """
    try:
        return parse_settings(Path(path).read_text(encoding="utf-8"), overrides)
    except (OSError, UnicodeDecodeError, SettingsError) as error:
        message = f"{path}: {error}"
        raise SettingsError(message) from error


def parse_settings(text: str, overrides: Sequence[str] = ()) -> KeeperSettings:
    """Settings from TOML. Relative paths are taken from the working directory."""
    given = parse_toml(text, overrides)
    refuse_unknown(given, {"cell", "keeper", "driver", "broker"}, "")
    cell = CellSettings(**read_section(CellSettings, given, "cell"))
    loop = LoopSettings(**read_section(LoopSettings, given, "keeper"))
    settings = KeeperSettings(cell, loop, _driver(given), _brokers(given.get("broker", {})))
    _check(settings)
    return settings


def settings_toml(settings: KeeperSettings) -> str:
    """The settings as TOML, for whoever starts a keeper."""
    lines = []
    driver = settings.driver
    sections = {
        "cell": _fields(settings.cell),
        "keeper": _fields(settings.keeper),
        "driver": kubernetes.section(driver)
        if isinstance(driver, KubernetesSettings)
        else _fields(driver),
        **{f"broker.{name}": values for name, values in settings.broker.items()},
    }
    for name, values in sections.items():
        lines.append(f"[{name}]")
        lines += [f"{key} = {toml_value(value)}" for key, value in values.items()]
        lines.append("")
    return "\n".join(lines)


def _fields(section: Any) -> dict[str, object]:  # noqa: ANN401 (any dataclass)
    return {each.name: getattr(section, each.name) for each in dataclasses.fields(section)}


def _driver(given: Mapping[str, object]) -> DriverSettings | KubernetesSettings:
    table = given.get("driver", {})
    if isinstance(table, dict) and table.get("kind") == kubernetes.KIND:
        return kubernetes.read_settings(table)
    return DriverSettings(**read_section(DriverSettings, given, "driver"))


def _brokers(given: object) -> Settings:
    if not isinstance(given, dict) or not all(isinstance(each, dict) for each in given.values()):
        message = "broker has sections only, as a broker's settings have"
        raise SettingsError(message)
    for name in given:
        if name in OWN:
            message = f"broker.{name}: the keeper itself sets it"
            raise SettingsError(message)
    return given


def _check(settings: KeeperSettings) -> None:
    if settings.driver.kind not in {"local", kubernetes.KIND}:
        message = f"driver.kind is {settings.driver.kind!r}; there are `local` and `kubernetes`"
        raise SettingsError(message)
    for name in ("keeper", "driver"):
        section = getattr(settings, name)
        for each in dataclasses.fields(section):
            value = getattr(section, each.name)
            if each.type == "int" and value < 1:
                message = f"{name}.{each.name} is {value}, want 1 or more"
                raise SettingsError(message)
