"""The keeper's settings of the Kubernetes driver, and the driver that they make."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from brokers.sections import SettingsError, read_section
from provisioning.cell.drivers.kubernetes.api import Api, ConfigException
from provisioning.cell.drivers.kubernetes.driver import KubernetesDriver
from provisioning.cell.drivers.kubernetes.options import KubernetesOptions, Resources

KIND = "kubernetes"
# What the files for brokers may have in all: a Secret takes 1 MiB, and settings are in it too.
FILES_BYTES_MAX = 512 * 1024


@dataclass(frozen=True)
class Surroundings:
    """What the keeper itself has to know.

    `kubeconfig` is a file, or empty for the service account of the keeper's pod. `broker_files`: a
    folder whose files brokers get beside their settings; those in a folder of it that has the name
    of a cluster are for that cluster alone. `broker_metadata` and `broker_bucket` are locations as
    brokers see them, by default the cell's; `{cluster}` stands for the cluster's id.
    """

    kind: str = KIND
    kubeconfig: str = ""
    broker_files: Path | None = None
    broker_metadata: str = ""
    broker_bucket: str = ""


@dataclass(frozen=True, kw_only=True)
class KubernetesSettings(Surroundings):
    """How brokers run as pods. `options`: the driver's own."""

    options: KubernetesOptions


def read_settings(given: Mapping[str, object]) -> KubernetesSettings:
    """From the section `driver`. Raises `SettingsError`, which names the setting."""
    own = {each.name for each in dataclasses.fields(Surroundings)}
    parts: tuple[dict[str, object], dict[str, object]] = ({}, {})
    for name, value in given.items():
        parts[name in own][name] = value
    options = read_section(KubernetesOptions, {"driver": parts[False]}, "driver", READERS)
    surroundings = read_section(Surroundings, {"driver": parts[True]}, "driver", READERS)
    for name, value in options.items():
        if isinstance(value, int | float) and value <= 0:
            message = f"driver.{name} is {value}, want more than 0"
            raise SettingsError(message)
    return KubernetesSettings(options=KubernetesOptions(**options), **surroundings)


def section(settings: KubernetesSettings) -> dict[str, object]:
    """As `read_settings` reads it."""
    own = {each.name: getattr(settings, each.name) for each in dataclasses.fields(Surroundings)}
    options = dataclasses.asdict(settings.options)
    return {name: value for name, value in {**own, **options}.items() if value not in ("", None)}


def make_driver(settings: KubernetesSettings) -> KubernetesDriver:
    """Raises `SettingsError` where nothing says how to reach the API server."""
    options = settings.options
    try:
        api = Api.connect(settings.kubeconfig, timeout_s=options.request_timeout_s)
    except (ConfigException, OSError) as error:
        message = f"driver.kubeconfig: {error}"
        raise SettingsError(message) from error
    return KubernetesDriver(api, options)


def make_folder(dfs: Path, cluster_id: str) -> None:
    """Makes a cluster's folder on the shared file system as the keeper has it mounted.

    It is for the keeper's user, which is that of brokers too. Raises `OSError`, also where the file
    system itself is not there.
    """
    (dfs / cluster_id).mkdir(mode=0o700, exist_ok=True)


class BrokerFiles:
    """Further files that brokers get, from a folder: read again when one of them changed."""

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder
        self._read: dict[Path, tuple[tuple[int, int], bytes]] = {}

    def of(self, cluster_id: str) -> dict[str, bytes]:
        """By name. Raises `OSError` where one cannot be read, and `SettingsError` for too much."""
        if self._folder is None:
            return {}
        found: dict[str, bytes] = {}
        for folder in (self._folder, self._folder / cluster_id):
            if folder.is_dir():
                found |= {path.name: self._content(path) for path in _files(folder)}
        if sum(map(len, found.values())) > FILES_BYTES_MAX:
            message = f"driver.broker_files: more than {FILES_BYTES_MAX} bytes for {cluster_id}"
            raise SettingsError(message)
        return found

    def _content(self, path: Path) -> bytes:
        status = path.stat()
        stamp = (status.st_mtime_ns, status.st_size)
        known = self._read.get(path)
        if known is None or known[0] != stamp:
            known = self._read[path] = (stamp, path.read_bytes())
        return known[1]


def _files(folder: Path) -> list[Path]:
    """A folder that Kubernetes mounted has hidden ones beside those that count."""
    return [path for path in sorted(folder.iterdir()) if path.is_file() and path.name[:1] != "."]


def _texts(value: object) -> Mapping[str, str]:
    table = _table(value)
    if not all(isinstance(each, str) for each in table.values()):
        message = "texts by name"
        raise ValueError(message)
    return {name: str(each) for name, each in table.items()}


def _table(value: object) -> Mapping[str, object]:
    if not isinstance(value, dict):
        message = "a table"
        raise ValueError(message)
    return value


def _tables(value: object) -> tuple[Mapping[str, object], ...]:
    if not isinstance(value, list):
        message = "a list of tables"
        raise ValueError(message)
    return tuple(_table(each) for each in value)


def _command(value: object) -> tuple[str, ...]:
    if not isinstance(value, list) or not value or not all(isinstance(e, str) for e in value):
        message = "a list of texts"
        raise ValueError(message)
    return tuple(value)


def _path(value: object) -> Path:
    if not isinstance(value, str) or not value:
        message = "a path"
        raise ValueError(message)
    return Path(value).absolute()


def _egress(value: object) -> tuple[tuple[str, tuple[int, ...]], ...]:
    message = 'a list such as [["10.0.0.0/8", [2379]]]'
    if not isinstance(value, list):
        raise ValueError(message)
    found = []
    for each in value:
        match each:
            case [str() as network, [*ports]] if all(type(port) is int for port in ports):
                found.append((network, tuple(ports)))
            case _:
                raise ValueError(message)
    return tuple(found)


def _resources(value: object) -> Resources:
    known = {each.name for each in dataclasses.fields(Resources)}
    texts = _texts(value)
    if unknown := sorted(set(texts) - known):
        message = f"of {', '.join(sorted(known))}, not {unknown[0]}"
        raise ValueError(message)
    return Resources(**texts)


# How values of the options' types are read; they raise `ValueError` with what is wanted.
READERS: Mapping[str, Callable[[object], object]] = {
    "Path | None": _path,
    "Resources": _resources,
    "Mapping[str, object]": _table,
    "Mapping[str, str]": _texts,
    "tuple[str, ...]": _command,
    "tuple[Mapping[str, object], ...]": _tables,
    "tuple[tuple[str, tuple[int, ...]], ...]": _egress,
}
