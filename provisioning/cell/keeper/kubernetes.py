"""The keeper's settings of the Kubernetes driver, and the driver that they make."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from brokers.settings.errors import SettingsError
from brokers.settings.fields import inlined, setting
from provisioning.cell.drivers.kubernetes.api import Api, ConfigException
from provisioning.cell.drivers.kubernetes.driver import KubernetesDriver
from provisioning.cell.drivers.kubernetes.options import KubernetesOptions

LOCAL = "local"
KIND = "kubernetes"
KINDS = (LOCAL, KIND)
# What the files for brokers may have in all: a Secret takes 1 MiB, and settings are in it too.
FILES_BYTES_MAX = 512 * 1024


@dataclass(frozen=True, kw_only=True)
class KubernetesSettings:
    """How brokers run as pods. `options`: the driver's own."""

    kind: str = setting(KIND, "`kubernetes`.", choices=KINDS)
    options: KubernetesOptions = inlined()
    kubeconfig: str = setting(
        "", "How to reach the API server; empty: as the service account of the keeper's pod."
    )
    broker_files: Path | None = setting(
        None,
        "A folder whose files every broker finds in `/etc/freshet`; those in its folder `<cluster "
        "id>` are for that cluster alone. A change reaches brokers that run. 512 KiB at most.",
    )
    broker_metadata: str = setting(
        "",
        "The metadata store as brokers see it, `{cluster}` for the cluster's id; empty: "
        "`cell.metadata`.",
    )
    broker_bucket: str = setting("", "The same for the bucket; empty: `cell.bucket`.")


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
