"""The keeper's settings, which are one TOML file.

`docs/reference/keeper-settings.md` is made from the texts here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from brokers.locations import Location
from brokers.settings.errors import SettingsError
from brokers.settings.fields import REQUIRED, section_of, setting
from brokers.settings.reading import load_settings_file, parse_toml, read_settings
from provisioning.cell.keeper.kubernetes import KIND, KINDS, LOCAL, KubernetesSettings

LOG_LEVELS = ("debug", "info", "warning", "error")
# Sections of a broker's settings that the keeper sets itself.
OWN = {"storage", "listener", "security", "broker"}


@dataclass(frozen=True)
class CellSettings:
    """Where the cell's data is stored."""

    metadata: Location = setting(
        REQUIRED, "The cell's metadata store: path of an SQLite file, `etcd://…` or `etcds://…`."
    )
    dfs: Path = setting(
        REQUIRED,
        "Folder of the shared file system. Where brokers are pods, the keeper makes each "
        "cluster's folder in it.",
    )
    bucket: Location = setting(REQUIRED, "The object store: a folder, or `s3://…`.")
    secret: Path = setting(REQUIRED, "File with the cell's secret: 64 hex digits, mode 0600.")


@dataclass(frozen=True)
class LoopSettings:
    """Settings of the keeper itself."""

    folder: Path = setting(
        REQUIRED,
        "The keeper's own folder, for its lock and `run/<cluster id>/slot-<n>/` of each local "
        "broker. It must be on a local file system.",
    )
    metrics: str = setting(
        "127.0.0.1:0",
        "`host:port` for `/metrics` and `/healthz`. Port 0 takes a free one, which the ready line "
        "names.",
    )
    standby: bool = setting(
        True,
        "While another keeper has the cell, wait until it ends. `false`: print which keeper has "
        "it, and exit with status 1.",
    )
    lease_ttl_s: int = setting(
        15,
        "For a cell in etcd: another keeper takes over this many seconds after this one last "
        "renewed its lease.",
        minimum=1,
    )
    stop_brokers_on_exit: bool = setting(
        False,
        "On SIGTERM, stop all brokers. `false`: they go on, and the next keeper takes them over.",
    )
    stop_timeout_ms: int = setting(
        15_000, "How long that may take; brokers that are left then are killed.", minimum=1
    )
    scrape_interval_ms: int = setting(
        1_000, "Interval at which a broker's status is read.", minimum=1
    )
    scrape_timeout_ms: int = setting(
        2_000, "How long a broker may take to answer with its status.", minimum=1
    )
    sample_interval_ms: int = setting(
        5_000, "Interval of samples of a running cluster's consumer groups.", minimum=1
    )
    sample_timeout_ms: int = setting(
        5_000, "How long a sample may take, also the last one before a cluster sleeps.", minimum=1
    )
    sample_file_interval_ms: int = setting(
        30_000,
        "Interval at which the samples of all clusters that changed are written to the object "
        "store, in one file.",
        minimum=1,
    )
    connections_interval_ms: int = setting(
        5_000,
        "Interval at which a status is written in which only the number of connections changed.",
        minimum=1,
    )
    stopping_grace_ms: int = setting(
        100,
        "Time from the status `stopping` until clients are counted for the last time; gateways "
        "read the status meanwhile.",
        minimum=1,
    )
    awake_min_ms: int = setting(
        3_000,
        "How long a cluster stays awake at least, however short its idle time: the client that "
        "woke it has yet to connect.",
        minimum=1,
    )
    retry_failed_ms: int = setting(
        10_000,
        "How long after its failure a wake request starts a failed cluster again.",
        minimum=1,
    )
    failures_max: int = setting(
        5,
        "A cluster is `failed` once a broker ended so often in a row without serving; the broker "
        "is still started again.",
        minimum=1,
    )
    unanswered_max: int = setting(
        15,
        "A broker that did not answer so often in a row is replaced: again after 10 s at the "
        "earliest, then after pauses that double up to 5 min. A broker whose machine is lost is "
        "replaced at once.",
        minimum=1,
    )
    unhealthy_percent_max: int = setting(
        20,
        "Deletions in the cell are held while more than this percentage of the brokers that should "
        "run do not serve.",
        minimum=1,
    )
    unhealthy_max: int = setting(
        50, "Deletions are also held while more than this many brokers do not serve.", minimum=1
    )
    unhealthy_min: int = setting(
        3, "Deletions are not held while fewer brokers than this do not serve.", minimum=1
    )
    hold_after_ms: int = setting(
        10_000, "How long that must last before deletions are held.", minimum=1
    )
    release_after_ms: int = setting(
        60_000,
        "How long it must be below half of these numbers before deletions are allowed again.",
        minimum=1,
    )
    etcd_compaction_interval_ms: int = setting(
        3_600_000,
        "For a cell in etcd: interval at which the keeper compacts etcd's history. Younger history "
        "stays, for programs that follow changes with a delay.",
        minimum=1,
    )
    etcd_quota_bytes: int = setting(
        2 * 1024**3,
        "For a cell in etcd: the quota of its members (`--quota-backend-bytes`), where they do not "
        "report it themselves, as etcd does from 3.6 on where one is set. An incident opens at "
        "70 % of it.",
        minimum=1,
    )
    log_level: str = setting(
        "info",
        "The lowest level that is logged to standard error: `debug`, `info`, `warning` or `error`.",
        choices=LOG_LEVELS,
    )


@dataclass(frozen=True)
class DriverSettings:
    """Settings of the driver of local processes."""

    kind: str = setting(
        LOCAL,
        "What runs brokers. `local`: processes of this machine. `kubernetes`: pods, with the "
        "settings of the next table instead of those that follow.",
        choices=KINDS,
    )
    start_timeout_ms: int = setting(
        120_000,
        "A broker that does not serve within this time is killed and started again.",
        minimum=1,
    )
    stop_timeout_ms: int = setting(30_000, "Time from SIGTERM to SIGKILL.", minimum=1)
    stop_timeout_awaited_ms: int = setting(
        2_000, "The same where the next start waits for the stop.", minimum=1
    )
    backoff_first_ms: int = setting(
        100,
        "Pause before the second start of a broker that ends again and again. The first start is "
        "at once, and each later pause doubles.",
        minimum=1,
    )
    backoff_max_ms: int = setting(
        30_000, "The longest pause before a broker that never served is started again.", minimum=1
    )
    backoff_served_max_ms: int = setting(
        250,
        "The longest pause before a broker that had served is started again. One that stood down "
        "three times in a row waits like one that never served.",
        minimum=1,
    )
    backoff_quiet_ms: int = setting(
        5_000,
        "After a broker served for this long, its next end counts as the first one again.",
        minimum=1,
    )
    log_bytes_max: int = setting(
        16 * 1024 * 1024, "The size at which a broker's log is rotated.", minimum=1
    )
    log_files: int = setting(3, "How many older log files are kept for each broker.", minimum=1)


@dataclass(frozen=True)
class KeeperSettings:
    """All settings of a keeper. `broker` are further settings of every broker, by section."""

    cell: CellSettings
    keeper: LoopSettings
    driver: DriverSettings | KubernetesSettings = section_of(
        {LOCAL: DriverSettings, KIND: KubernetesSettings}
    )
    broker: Mapping[str, Mapping[str, object]] = setting(
        {},
        "Further settings of every broker.",
        expected="sections only, as a broker's settings have",
    )


def load_settings(path: str | Path, overrides: Sequence[str] = ()) -> KeeperSettings:
    """Reads a settings file. Raises `SettingsError`, which names the file and the setting.

    `overrides` are `section.setting=value`, and win over the file.
    """
    return load_settings_file(path, lambda text: parse_settings(text, overrides))


def parse_settings(text: str, overrides: Sequence[str] = ()) -> KeeperSettings:
    """Settings from the text of a TOML file. Raises `SettingsError`.

    Relative paths are relative to the working directory.
    """
    settings = read_settings(KeeperSettings, parse_toml(text, overrides))
    for name in settings.broker:
        if name in OWN:
            message = f"broker.{name}: the keeper itself sets it"
            raise SettingsError(message)
    return settings
