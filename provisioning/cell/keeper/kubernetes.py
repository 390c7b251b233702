"""The keeper's settings of the Kubernetes driver, and what it makes from them."""

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
# The most bytes of all files for a broker: a Secret takes 1 MiB, and the settings are in it too.
FILES_BYTES_MAX = 512 * 1024


@dataclass(frozen=True, kw_only=True)
class KubernetesSettings:
    """Settings of a keeper whose brokers are pods. `options` are those of the driver itself."""

    kind: str = setting(KIND, "`kubernetes`.", choices=KINDS)
    options: KubernetesOptions = inlined()
    kubeconfig: str = setting(
        "", "Path of a kubeconfig file; empty: the service account of the keeper's pod."
    )
    broker_files: Path | None = setting(
        None,
        "A folder whose files every broker gets in `/etc/freshet`. Those in its folder `<cluster "
        "id>` are for that cluster only. A change reaches running brokers. 512 KiB at most.",
    )
    broker_metadata: str = setting(
        "",
        "The metadata store as brokers reach it, with `{cluster}` for the cluster's id; empty: "
        "`cell.metadata`.",
    )
    broker_bucket: str = setting(
        "", "The bucket as brokers reach it, as above; empty: `cell.bucket`."
    )


def make_driver(settings: KubernetesSettings) -> KubernetesDriver:
    """Makes the Kubernetes driver.

    Raises `SettingsError` where the API server is not configured.
    """
    options = settings.options
    try:
        api = Api.connect(settings.kubeconfig, timeout_s=options.request_timeout_s)
    except (ConfigException, OSError) as error:
        message = f"driver.kubeconfig: {error}"
        raise SettingsError(message) from error
    return KubernetesDriver(api, options)


def make_folder(dfs: Path, cluster_id: str) -> None:
    """Creates a cluster's folder on the shared file system, which the keeper has mounted at `dfs`.

    It belongs to the keeper's user, which is that of brokers too. Raises `OSError`, also where the
    file system is not mounted.
    """
    (dfs / cluster_id).mkdir(mode=0o700, exist_ok=True)


class BrokerFiles:
    """Further files for brokers, from a folder. A file is read again only when it changed."""

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder
        self._read: dict[Path, tuple[tuple[int, int], bytes]] = {}

    def of(self, cluster_id: str) -> dict[str, bytes]:
        """The files for a cluster's brokers, by name.

        Raises `OSError` where one cannot be read, and `SettingsError` where they are too large.
        """
        if self._folder is None:
            return {}
        files: dict[str, bytes] = {}
        for folder in (self._folder, self._folder / cluster_id):
            if folder.is_dir():
                files |= {path.name: self._read_cached(path) for path in _files_in(folder)}
        if sum(map(len, files.values())) > FILES_BYTES_MAX:
            message = (
                f"driver.broker_files: {cluster_id} has more than {FILES_BYTES_MAX} bytes of files"
            )
            raise SettingsError(message)
        return files

    def _read_cached(self, path: Path) -> bytes:
        status = path.stat()
        stamp = (status.st_mtime_ns, status.st_size)
        known = self._read.get(path)
        if known is None or known[0] != stamp:
            known = self._read[path] = (stamp, path.read_bytes())
        return known[1]


def _files_in(folder: Path) -> list[Path]:
    """The files of a folder, without hidden ones, which Kubernetes adds to a mounted folder."""
    return [path for path in sorted(folder.iterdir()) if path.is_file() and path.name[:1] != "."]
