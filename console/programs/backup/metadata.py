"""The cell's metadata store: it is copied while it is in use, and replaced by a backup's copy.

Each kind of store has a class with the methods of `MetadataStore`; `metadata_store` picks one.
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
from console.programs.backup.manifest import MetadataFacts, describe_file, sync_path

# The version of the tables in `brokers/core/crates/metadata/src/sqlite/tables.rs`.
SQLITE_VERSION = 1
BUSY_S = 10.0
# A database of SQLite has up to three files: itself, its write-ahead log and the log's index.
SUFFIXES = ("", "-wal", "-shm")


class MetadataStore(Protocol):
    """What backup and restore need of a metadata store. Every method may raise `BackupError`."""

    def copy(self, folder: Path) -> MetadataFacts:
        """Copies the store into `folder`, as it is at one moment of the call. No writer waits."""

    def check(self, facts: MetadataFacts) -> None:
        """Raises where a backup's copy is of another kind of store, or of a newer release."""

    def users(self) -> list[int]:
        """Returns the ids of the processes of this machine that have the store open."""

    def stage(self, folder: Path, facts: MetadataFacts) -> None:
        """Prepares a backup's copy for `install_staged`. The store itself does not change."""

    def install_staged(self, stamp: str) -> Path | None:
        """Replaces the store by the staged copy.

        Returns the file in which the store before is kept, whose name ends in `stamp`; None where
        there was no store.
        """

    def unstage(self) -> None:
        """Removes a staged copy."""


def metadata_store(address: str, secret: Path) -> MetadataStore:
    """Returns the store at an address as in the setting `cell.metadata`.

    `secret`: the file of the cell's secret. Raises `BackupError` where the address is wrong.
    """
    try:
        place = metadata_location(address)
    except ConfigError as error:
        raise BackupError(f"cell.metadata: {error}.") from error
    return SqliteMetadata(place) if isinstance(place, Path) else EtcdMetadata(place, secret)


class SqliteMetadata:
    """A metadata store in one SQLite database; implements `MetadataStore`."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._staged = path.with_name(f"{path.name}.restored")

    def copy(self, folder: Path) -> MetadataFacts:
        """See `MetadataStore.copy`. The copy is one file, with what the write-ahead log holds."""
        if not self._path.exists():
            raise BackupError(f"There is no metadata store at {self._path}.")
        target = folder / "metadata.sqlite"
        try:
            with contextlib.closing(_open_sqlite(self._path)) as store:
                store.execute("VACUUM INTO ?", [str(target)])
            target.chmod(0o600)
            with contextlib.closing(_open_sqlite(target)) as copied:
                version, revision = _read_version(copied)
        except sqlite3.Error as error:
            raise BackupError(f"{self._path} cannot be copied: {error}.") from error
        sync_path(target)
        return MetadataFacts(describe_file(target), "sqlite", version, revision)

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
        """See `MetadataStore.users`. Processes of other accounts are seen by root only."""
        with contextlib.suppress(FileNotFoundError):
            status = self._path.stat()
            return _processes_holding(status.st_dev, status.st_ino)
        return []

    def stage(self, folder: Path, facts: MetadataFacts) -> None:
        """See `MetadataStore.stage`."""
        self.unstage()
        self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(self._staged, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "wb") as target, (folder / facts.copy.name).open("rb") as source:
            shutil.copyfileobj(source, target)
        try:
            with contextlib.closing(_open_sqlite(self._staged)) as store:
                version_of_copy = _read_version(store)
        except sqlite3.Error as error:
            raise BackupError(f"The metadata's copy cannot be read: {error}.") from error
        if version_of_copy != (facts.version, facts.revision):
            raise BackupError(
                "The metadata's copy has another version or revision than the manifest says: the"
                " backup is damaged."
            )
        sync_path(self._staged)

    def install_staged(self, stamp: str) -> Path | None:
        """See `MetadataStore.install_staged`."""
        kept = self._path.with_name(f"{self._path.name}.before-{stamp}")
        existed = self._path.exists()
        # The log moves before the database: a log that is left without its database is never read.
        for suffix in reversed(SUFFIXES):
            with contextlib.suppress(FileNotFoundError):
                self._path.with_name(self._path.name + suffix).rename(
                    kept.with_name(kept.name + suffix)
                )
        self._staged.rename(self._path)
        sync_path(self._path.parent)
        return kept if existed else None

    def unstage(self) -> None:
        """See `MetadataStore.unstage`."""
        for suffix in SUFFIXES:
            self._staged.with_name(self._staged.name + suffix).unlink(missing_ok=True)


def _open_sqlite(path: Path) -> sqlite3.Connection:
    """Opens an existing database; waits up to `BUSY_S` for transactions of other processes."""
    return sqlite3.connect(f"{path.as_uri()}?mode=rw", uri=True, timeout=BUSY_S)


def _read_version(store: sqlite3.Connection) -> tuple[int, int]:
    """Returns the version of the tables and the revision, after SQLite has checked the file.

    Raises `sqlite3.DatabaseError` where the file is damaged.
    """
    (result,) = store.execute("PRAGMA integrity_check(1)").fetchone()
    if result != "ok":
        raise sqlite3.DatabaseError(result)
    row = store.execute("SELECT version, revision FROM meta").fetchone()
    if row is None:
        message = "it has no version"
        raise sqlite3.DatabaseError(message)
    version, revision = row
    return int(version), int(revision)


def _processes_holding(device: int, number: int) -> list[int]:
    """Returns the ids of the other processes that have a file open, sorted.

    `device` and `number`: the file's device and inode.
    """
    holders = []
    for process in Path("/proc").iterdir():
        if not process.name.isdecimal() or int(process.name) == os.getpid():
            continue
        # The process ended meanwhile, or belongs to another account.
        with contextlib.suppress(OSError):
            if any(_is_same_file(handle, device, number) for handle in (process / "fd").iterdir()):
                holders.append(int(process.name))
    return sorted(holders)


def _is_same_file(handle: Path, device: int, number: int) -> bool:
    try:
        held = handle.stat()
    except OSError:
        return False
    return (held.st_dev, held.st_ino) == (device, number)
