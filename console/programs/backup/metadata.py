"""The cell's metadata store: copied while it is in use, put in the place of the present one.

A store of another kind is another class of this shape, and `metadata_store` knows its address.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import sqlite3
from pathlib import Path
from typing import Protocol

from brokers.errors import ConfigError
from brokers.locations import metadata_location
from console.programs.backup.errors import BackupError
from console.programs.backup.etcd import EtcdMetadata
from console.programs.backup.manifest import MetadataFacts, describe, sync

# Of the tables that `brokers/core/crates/metadata/src/sqlite/tables.rs` reads.
SQLITE_VERSION = 1
BUSY_S = 10.0
# A file of SQLite is up to three: what was written last, and how to find it there.
SUFFIXES = ("", "-wal", "-shm")


class MetadataStore(Protocol):
    """What backup and restore need of a metadata store. All of it raises `BackupError`."""

    def copy(self, folder: Path) -> MetadataFacts:
        """Copies it as it is at one moment of the call; writers do not wait."""

    def check(self, facts: MetadataFacts) -> None:
        """Raises where a backup's copy is of another kind, or of a newer release."""

    def users(self) -> list[int]:
        """Processes of this machine that have it open."""

    def stage(self, folder: Path, facts: MetadataFacts) -> None:
        """Brings a backup's copy to where `put` needs it. Nothing that is in use changes."""

    def put(self, stamp: str) -> Path | None:
        """Makes the staged copy the store; gives where the one before it is kept, if any."""

    def unstage(self) -> None:
        """Forgets a staged copy."""


def metadata_store(address: str, secret: Path) -> MetadataStore:
    """The store of an address, as `cell.metadata` has it. `secret`: the file of the cell's own.

    Raises `BackupError`.
    """
    try:
        place = metadata_location(address)
    except ConfigError as error:
        raise BackupError(f"cell.metadata: {error}.") from error
    return SqliteMetadata(place) if isinstance(place, Path) else EtcdMetadata(place, secret)


class SqliteMetadata:
    """One SQLite file."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._staged = path.with_name(f"{path.name}.restored")

    def copy(self, folder: Path) -> MetadataFacts:
        """See `MetadataStore.copy`. What is in the write-ahead log is in the copy's one file."""
        if not self._path.exists():
            raise BackupError(f"There is no metadata store at {self._path}.")
        target = folder / "metadata.sqlite"
        try:
            with contextlib.closing(_open(self._path)) as store:
                store.execute("VACUUM INTO ?", [str(target)])
            target.chmod(0o600)
            with contextlib.closing(_open(target)) as copied:
                version, revision = _look(copied)
        except sqlite3.Error as error:
            raise BackupError(f"{self._path} cannot be copied: {error}.") from error
        sync(target)
        return MetadataFacts(describe(target), "sqlite", version, revision)

    def check(self, facts: MetadataFacts) -> None:
        """See `MetadataStore.check`."""
        if facts.kind != "sqlite":
            raise BackupError(
                f"The backup's metadata is of {facts.kind}, and cell.metadata names SQLite."
            )
        if facts.version > SQLITE_VERSION:
            raise BackupError(
                f"The backup's metadata has tables of version {facts.version}, and this release"
                f" reads {SQLITE_VERSION}: restore with the release that made it."
            )

    def users(self) -> list[int]:
        """See `MetadataStore.users`. Of other accounts' processes only root is told."""
        with contextlib.suppress(FileNotFoundError):
            wanted = self._path.stat()
            return _holders(wanted.st_dev, wanted.st_ino)
        return []

    def stage(self, folder: Path, facts: MetadataFacts) -> None:
        """See `MetadataStore.stage`."""
        self.unstage()
        self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(self._staged, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "wb") as target, (folder / facts.copy.name).open("rb") as source:
            shutil.copyfileobj(source, target)
        try:
            with contextlib.closing(_open(self._staged)) as store:
                found = _look(store)
        except sqlite3.Error as error:
            raise BackupError(f"The metadata's copy cannot be read: {error}.") from error
        if found != (facts.version, facts.revision):
            raise BackupError("The metadata's copy is not what the manifest says.")
        sync(self._staged)

    def put(self, stamp: str) -> Path | None:
        """See `MetadataStore.put`. A log without its file says nothing, so the file goes last."""
        kept = self._path.with_name(f"{self._path.name}.before-{stamp}")
        found = self._path.exists()
        for suffix in reversed(SUFFIXES):
            with contextlib.suppress(FileNotFoundError):
                self._path.with_name(self._path.name + suffix).rename(
                    kept.with_name(kept.name + suffix)
                )
        self._staged.rename(self._path)
        sync(self._path.parent)
        return kept if found else None

    def unstage(self) -> None:
        """See `MetadataStore.unstage`."""
        for suffix in SUFFIXES:
            self._staged.with_name(self._staged.name + suffix).unlink(missing_ok=True)


def _open(path: Path) -> sqlite3.Connection:
    """Opens a file that is there. It is not made, and a transaction of another is waited for."""
    return sqlite3.connect(f"{path.as_uri()}?mode=rw", uri=True, timeout=BUSY_S)


def _look(store: sqlite3.Connection) -> tuple[int, int]:
    """Version of the tables and revision, once SQLite finds the file whole."""
    (found,) = store.execute("PRAGMA integrity_check(1)").fetchone()
    if found != "ok":
        raise sqlite3.DatabaseError(found)
    row = store.execute("SELECT version, revision FROM meta").fetchone()
    if row is None:
        message = "it has no version"
        raise sqlite3.DatabaseError(message)
    version, revision = row
    return int(version), int(revision)


def _holders(device: int, number: int) -> list[int]:
    """Processes with a file open, but ourselves."""
    found = []
    for process in Path("/proc").iterdir():
        if not process.name.isdecimal() or int(process.name) == os.getpid():
            continue
        # It ended meanwhile, or is another account's.
        with contextlib.suppress(OSError):
            if any(_is(handle, device, number) for handle in (process / "fd").iterdir()):
                found.append(int(process.name))
    return sorted(found)


def _is(handle: Path, device: int, number: int) -> bool:
    try:
        held = handle.stat()
    except OSError:
        return False
    return (held.st_dev, held.st_ino) == (device, number)
