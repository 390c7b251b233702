"""A cell's metadata in etcd: it is copied at one revision, and written in place of what is there.

The copy is a file of JSON lines. The first one has the copy's version, etcd's revision and how many
entries follow; each further one has the key of an entry (below the cell's root) and its value in
base64. Entries under a lease of etcd, such as the keeper's, are left out, as they end with their
holder. Users of etcd are left out as well: `install_staged` makes them for each cluster.
"""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path

from brokers.errors import BrokerError
from brokers.etcd import Entry, Etcd
from brokers.etcd_access import allow_cluster
from brokers.locations import EtcdLocation
from brokers.secrets import metadata_password, read_cell_secret
from console.programs.backup.errors import BackupError
from console.programs.backup.manifest import MetadataFacts, describe_file, sync_path

KIND = "etcd"
VERSION = 1
NAME = "metadata.etcd"
# etcd allows 128 operations in a transaction and 1.5 MiB in a request, which base64 counts against.
BATCH_KEYS = 100
BATCH_BYTES = 512 * 1024
LEASE = "keeper/lease"
CLUSTERS = "cl_"


class EtcdMetadata:
    """All entries below a root in etcd; implements `metadata.MetadataStore`."""

    def __init__(self, location: EtcdLocation, secret: Path) -> None:
        self._etcd = Etcd(location)
        self._secret = secret
        self._staged: tuple[Entry, ...] = ()
        # The entries before a restore are kept beside the cell's secret: they are as secret.
        self._folder = secret.parent

    def copy(self, folder: Path) -> MetadataFacts:
        """See `MetadataStore.copy`."""
        target = folder / NAME
        with _as_backup_errors():
            contents = self._etcd.range("")
        kept = [entry for entry in contents.entries if not entry.lease]
        _write_copy(target, kept, contents.revision)
        return MetadataFacts(describe_file(target), KIND, VERSION, contents.revision)

    def check(self, facts: MetadataFacts) -> None:
        """See `MetadataStore.check`."""
        if facts.kind != KIND:
            raise BackupError(
                f"The backup's metadata is of {facts.kind}, and cell.metadata names etcd."
            )
        if facts.version > VERSION:
            raise BackupError(
                f"The backup's metadata is of version {facts.version}, and this release reads"
                f" {VERSION}: restore with the release that made it."
            )

    def users(self) -> list[int]:
        """See `MetadataStore.users`. Processes cannot be listed here, so the list is empty.

        Raises `BackupError` while a keeper holds the cell's lease, on whatever machine it runs.
        """
        with _as_backup_errors():
            held = self._etcd.get(LEASE)
        if held is not None:
            raise BackupError(
                "A keeper holds this cell's lease: stop keepers, gateways, agents and brokers on"
                " every machine, then try again. The lease of a killed keeper ends by itself."
            )
        return []

    def stage(self, folder: Path, facts: MetadataFacts) -> None:
        """See `MetadataStore.stage`."""
        revision, self._staged = _read_copy(folder / facts.copy.name)
        if revision != facts.revision:
            raise BackupError(
                "The metadata's copy has another revision than the manifest says: the backup is"
                " damaged."
            )

    def install_staged(self, stamp: str) -> Path | None:
        """See `MetadataStore.install_staged`.

        A repeated call completes what a crash interrupted.
        """
        with _as_backup_errors():
            before = self._etcd.range("")
            kept = None
            if before.entries:
                kept = self._folder / f"{NAME}.before-{stamp}"
                _write_copy(
                    kept, [entry for entry in before.entries if not entry.lease], before.revision
                )
            self._etcd.remove("")
            for batch in _batches_of(self._staged):
                self._etcd.write({entry.key: entry.value for entry in batch})
            self._allow_brokers()
        return kept

    def unstage(self) -> None:
        """See `MetadataStore.unstage`."""
        self._staged = ()

    def _allow_brokers(self) -> None:
        """Makes the etcd users of the clusters that came back, where etcd asks for passwords."""
        if self._etcd.location.user is None:
            return
        secret = read_cell_secret(self._secret)
        names = {entry.key.partition("/")[0] for entry in self._staged}
        for name in sorted(name for name in names if name.startswith(CLUSTERS)):
            allow_cluster(self._etcd, name, metadata_password(secret, name))


@contextmanager
def _as_backup_errors() -> Iterator[None]:
    """Raises errors of etcd as `BackupError`."""
    try:
        yield
    except BrokerError as error:
        raise BackupError(f"cell.metadata: {error}.") from error


def _write_copy(target: Path, entries: list[Entry], revision: int) -> None:
    """Writes a copy into a new file, mode 0600, and syncs it."""
    head = {"version": VERSION, "revision": revision, "entries": len(entries)}
    descriptor = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(json.dumps(head) + "\n")
        for entry in entries:
            value = base64.b64encode(entry.value).decode()
            file.write(json.dumps({"key": entry.key, "value": value}) + "\n")
    sync_path(target)
    sync_path(target.parent)


def _read_copy(source: Path) -> tuple[int, tuple[Entry, ...]]:
    """Returns the revision and the entries of a copy. Raises `BackupError` where it is damaged."""
    try:
        with source.open(encoding="utf-8") as file:
            head = json.loads(file.readline())
            lines = [json.loads(line) for line in file]
        entries = tuple(
            Entry(line["key"], base64.b64decode(line["value"], validate=True), 0) for line in lines
        )
        revision = int(head["revision"])
        whole = len(entries) == head["entries"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise BackupError(f"The metadata's copy cannot be read: {error}.") from error
    if not whole:
        raise BackupError("The metadata's copy has fewer entries than it says: it is damaged.")
    return revision, entries


def _batches_of(entries: tuple[Entry, ...]) -> Iterator[list[Entry]]:
    """Splits entries into batches of at most `BATCH_KEYS` entries and about `BATCH_BYTES` bytes."""
    rest = iter(entries)
    waiting = list(islice(rest, 1))
    while waiting:
        batch, size = waiting, len(waiting[0].value)
        waiting = []
        for entry in rest:
            size += len(entry.value)
            if len(batch) == BATCH_KEYS or size > BATCH_BYTES:
                waiting = [entry]
                break
            batch.append(entry)
        yield batch
