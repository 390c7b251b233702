"""The keeper's settings: one TOML file. `docs/reference/keeper-settings.md` is made from these."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from brokers.locations import Location
from brokers.settings.errors import SettingsError
from brokers.settings.fields import REQUIRED, section_of, setting
from brokers.settings.reading import load, parse_toml, read_settings
from provisioning.cell.keeper.kubernetes import KIND, KINDS, LOCAL, KubernetesSettings

LOG_LEVELS = ("debug", "info", "warning", "error")
# Settings of brokers that the keeper decides itself.
OWN = {"storage", "listener", "security", "broker"}


@dataclass(frozen=True)
class CellSettings:
    """Where the cell's data lies."""

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
    """The keeper itself."""

    folder: Path = setting(
        REQUIRED,
        "Its own folder: the lock, and `run/<cluster id>/slot-<n>/` for each local broker. Must "
        "be set, on a local file system.",
    )
    metrics: str = setting(
        "127.0.0.1:0",
        "`host:port` for `/metrics` and `/healthz`. Port 0 takes a free one, which the ready line "
        "names.",
    )
    standby: bool = setting(
        True,
        "Where another keeper has the cell: wait for its end. `false`: say who it is and exit "
        "with status 1.",
    )
    lease_ttl_s: int = setting(
        15,
        "A cell in etcd: another keeper takes over so many seconds after this one was last heard "
        "of.",
        minimum=1,
    )
    stop_brokers_on_exit: bool = setting(
        False,
        "On SIGTERM, stop all brokers. `false`: they go on, and the next keeper takes them over.",
    )
    stop_timeout_ms: int = setting(
        15_000, "How long they may take; what is left then is killed.", minimum=1
    )
    scrape_interval_ms: int = setting(1_000, "Between two looks at a broker's metrics.", minimum=1)
    scrape_timeout_ms: int = setting(
        2_000, "How long the broker may take to answer one.", minimum=1
    )
    sample_interval_ms: int = setting(
        5_000, "Between two samples of a running cluster's groups.", minimum=1
    )
    sample_timeout_ms: int = setting(
        5_000, "How long one may take, also before a cluster sleeps.", minimum=1
    )
    connections_interval_ms: int = setting(
        5_000,
        "A status in which only the number of connections changed is written no more often.",
        minimum=1,
    )
    stopping_grace_ms: int = setting(
        100,
        "From the status `stopping` until the last look for clients: gateways learn of it "
        "meanwhile.",
        minimum=1,
    )
    awake_min_ms: int = setting(
        3_000,
        "A cluster stays awake for so long at least, however short its idle time: who woke it has "
        "yet to connect.",
        minimum=1,
    )
    retry_failed_ms: int = setting(
        10_000, "A cluster that failed is tried again by a wake request no sooner.", minimum=1
    )
    failures_max: int = setting(
        5,
        "A broker that ended so often in a row without serving makes its cluster `failed`; it is "
        "still tried.",
        minimum=1,
    )
    unanswered_max: int = setting(
        15,
        "A broker that did not answer so often in a row is replaced; again after 10 s, and then "
        "after pauses that double up to 5 min. One whose machine is lost is replaced at once.",
        minimum=1,
    )
    unhealthy_percent_max: int = setting(
        20,
        "While more than so many percent of the brokers that should run do not serve, nothing may "
        "be deleted in the cell.",
        minimum=1,
    )
    unhealthy_max: int = setting(50, "Nor while more than so many brokers do not.", minimum=1)
    unhealthy_min: int = setting(3, "Fewer than so many hold nothing.", minimum=1)
    hold_after_ms: int = setting(
        10_000, "How long that lasts before deletions are held.", minimum=1
    )
    release_after_ms: int = setting(
        60_000, "How long it is below half of that before they are allowed again.", minimum=1
    )
    etcd_compaction_interval_ms: int = setting(
        3_600_000,
        "A cell in etcd: so often the keeper compacts etcd's history. What is younger than this "
        "stays, for whoever follows changes with a delay.",
        minimum=1,
    )
    etcd_quota_bytes: int = setting(
        2 * 1024**3,
        "A cell in etcd: the quota of its members (`--quota-backend-bytes`), where they do not "
        "tell it themselves, as etcd does from 3.6 on where one is set. An incident opens at 70 % "
        "of it.",
        minimum=1,
    )
    log_level: str = setting(
        "info", "`debug`, `info`, `warning` or `error`. To standard error.", choices=LOG_LEVELS
    )


@dataclass(frozen=True)
class DriverSettings:
    """The driver of local processes."""

    kind: str = setting(
        LOCAL,
        "What runs brokers. `local`: processes of this machine. `kubernetes`: pods, with the "
        "settings of the next table instead of those that follow.",
        choices=KINDS,
    )
    start_timeout_ms: int = setting(
        120_000, "A broker that does not serve by then is killed and started again.", minimum=1
    )
    stop_timeout_ms: int = setting(30_000, "From SIGTERM to SIGKILL.", minimum=1)
    stop_timeout_awaited_ms: int = setting(
        2_000, "The same where somebody waits for the next start.", minimum=1
    )
    backoff_first_ms: int = setting(
        100,
        "Pause before the second start after ends in a row; the first is at once, each later "
        "pause doubles.",
        minimum=1,
    )
    backoff_max_ms: int = setting(
        30_000, "The longest pause of a broker that ends without having served.", minimum=1
    )
    backoff_served_max_ms: int = setting(
        250,
        "The longest pause of one that had served. After three that stood down in a row, as of "
        "one that had not.",
        minimum=1,
    )
    backoff_quiet_ms: int = setting(
        5_000,
        "A broker that served so long counts as sound: its end is a first one again.",
        minimum=1,
    )
    log_bytes_max: int = setting(
        16 * 1024 * 1024, "A broker's log is rotated at this size.", minimum=1
    )
    log_files: int = setting(3, "Older logs that are kept.", minimum=1)


@dataclass(frozen=True)
class KeeperSettings:
    """All settings. `broker`: further settings of every broker, by section."""

    cell: CellSettings
    keeper: LoopSettings
    driver: DriverSettings | KubernetesSettings = section_of(
        {LOCAL: DriverSettings, KIND: KubernetesSettings}
    )
    broker: Mapping[str, Mapping[str, object]] = setting(
        {}, "Further settings of every broker.", wanted="sections only, as a broker's settings have"
    )


def load_settings(path: str | Path, overrides: Sequence[str] = ()) -> KeeperSettings:
    """Reads a settings file. Raises `SettingsError`, which names the file and the setting.

    `overrides` are `section.setting=value`, and win over the file.
    """
    return load(path, lambda text: parse_settings(text, overrides))


def parse_settings(text: str, overrides: Sequence[str] = ()) -> KeeperSettings:
    """Settings from TOML. Relative paths are taken from the working directory."""
    settings = read_settings(KeeperSettings, parse_toml(text, overrides))
    for name in settings.broker:
        if name in OWN:
            message = f"broker.{name}: the keeper itself sets it"
            raise SettingsError(message)
    return settings
