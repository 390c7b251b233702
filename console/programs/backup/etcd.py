"""A cell's metadata in etcd: copied at one revision, and written in the place of what is there.

The copy is lines of JSON: first its version, etcd's revision and how many entries follow, then each
entry with its key below the cell's root and its value in base64. What ends with its holder, as the
keeper's lease does, is left out. Users are no part of it: each is made anew with its cluster.
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
from console.programs.backup.manifest import MetadataFacts, describe, sync

KIND = "etcd"
VERSION = 1
NAME = "metadata.etcd"
# etcd takes 128 operations in a transaction and 1.5 MiB in a request, base64 included.
BATCH_KEYS = 100
BATCH_BYTES = 512 * 1024
LEASE = "keeper/lease"
CLUSTERS = "cl_"


class EtcdMetadata:
    """What lies below a root of an etcd; a `console.programs.backup.metadata.MetadataStore`."""

    def __init__(self, location: EtcdLocation, secret: Path) -> None:
        self._etcd = Etcd(location)
        self._secret = secret
        self._staged: tuple[Entry, ...] = ()
        # Where what was there before is kept: beside the cell's secret, which is as secret.
        self._folder = secret.parent

    def copy(self, folder: Path) -> MetadataFacts:
        """See `MetadataStore.copy`."""
        target = folder / NAME
        with _errors():
            found = self._etcd.range("")
        kept = [entry for entry in found.entries if not entry.lease]
        _write(target, kept, found.revision)
        return MetadataFacts(describe(target), KIND, VERSION, found.revision)

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
        """See `MetadataStore.users`. Who is on other machines is not told, but a keeper is seen."""
        with _errors():
            held = self._etcd.get(LEASE)
        if held is not None:
            raise BackupError(
                "A keeper holds this cell's lease: stop keepers, gateways, agents and brokers on"
                " every machine. A lease of one that was killed ends by itself."
            )
        return []

    def stage(self, folder: Path, facts: MetadataFacts) -> None:
        """See `MetadataStore.stage`."""
        revision, self._staged = _read(folder / facts.copy.name)
        if revision != facts.revision:
            raise BackupError("The metadata's copy is not what the manifest says.")

    def put(self, stamp: str) -> Path | None:
        """See `MetadataStore.put`. Repeated, it completes what a crash left half done."""
        with _errors():
            before = self._etcd.range("")
            kept = None
            if before.entries:
                kept = self._folder / f"{NAME}.before-{stamp}"
                _write(kept, [each for each in before.entries if not each.lease], before.revision)
            self._etcd.remove("")
            for batch in _batches(self._staged):
                self._etcd.write({entry.key: entry.value for entry in batch})
            self._allow_brokers()
        return kept

    def unstage(self) -> None:
        """See `MetadataStore.unstage`."""
        self._staged = ()

    def _allow_brokers(self) -> None:
        """Where etcd asks for passwords, brokers of clusters that came back have none yet."""
        if self._etcd.location.user is None:
            return
        secret = read_cell_secret(self._secret)
        names = {entry.key.partition("/")[0] for entry in self._staged}
        for name in sorted(name for name in names if name.startswith(CLUSTERS)):
            allow_cluster(self._etcd, name, metadata_password(secret, name))


@contextmanager
def _errors() -> Iterator[None]:
    try:
        yield
    except BrokerError as error:
        raise BackupError(f"cell.metadata: {error}.") from error


def _write(target: Path, entries: list[Entry], revision: int) -> None:
    head = {"version": VERSION, "revision": revision, "entries": len(entries)}
    descriptor = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(json.dumps(head) + "\n")
        for entry in entries:
            value = base64.b64encode(entry.value).decode()
            file.write(json.dumps({"key": entry.key, "value": value}) + "\n")
    sync(target)
    sync(target.parent)


def _read(source: Path) -> tuple[int, tuple[Entry, ...]]:
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
        raise BackupError("The metadata's copy is not whole.")
    return revision, entries


def _batches(entries: tuple[Entry, ...]) -> Iterator[list[Entry]]:
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
