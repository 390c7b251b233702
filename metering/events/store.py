"""The store of usage files: its interface, and an implementation over a folder."""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path, PurePosixPath
from typing import Protocol

from metering.events.errors import UsageFormatError
from metering.events.keys import day_prefix, parse_key
from metering.events.manifests import UsageManifest, matches_manifest, parse_manifest
from metering.events.times import DAY_MS, day_of

# The folder of files that are being written. No key can lie in it, because of its dot.
_UNFINISHED = ".unfinished"


class UsageStore(Protocol):
    """Immutable objects by key. Every call raises `OSError` where the store cannot be reached."""

    def put_new(self, key: str, data: bytes) -> bool:
        """Stores an object unless the key is taken; returns False where it is, whatever it holds.

        Once it returns, the object is durable. No reader ever sees a part of it.
        """

    def get(self, key: str) -> bytes:
        """The bytes of an object. Raises `FileNotFoundError` where there is none."""

    def list(self, prefix: str) -> Iterator[str]:
        """The keys that begin with `prefix`, in order."""


class RemovingStore(UsageStore, Protocol):
    """A store whose objects can be removed too, which no agent does."""

    def remove(self, prefix: str) -> int:
        """Removes the objects whose keys begin with `prefix`; returns how many there were."""


class PartStore(RemovingStore, Protocol):
    """A store that reads parts of objects too."""

    def read_part(self, key: str, start: int, length: int) -> bytes:
        """So many bytes of an object from `start` on, fewer at its end.

        Raises `FileNotFoundError`.
        """

    def read_end(self, key: str, length: int) -> tuple[bytes, int]:
        """The last bytes of an object, all of a shorter one, and its size.

        Raises `FileNotFoundError`.
        """


class FolderUsageStore:
    """A store in a folder, which the first write makes. Any number of processes may use it."""

    def __init__(self, root: str | Path) -> None:
        self.root = Path(root)

    def put_new(self, key: str, data: bytes) -> bool:
        """See `UsageStore`."""
        path = self._path(key)
        if path.exists():
            return False
        unfinished = self.root / _UNFINISHED / f"{os.getpid()}-{secrets.token_hex(8)}"
        _make_folder(unfinished.parent)
        _make_folder(path.parent)
        try:
            _write_durably(unfinished, data)
            # A link, because a rename would replace an existing object; a link fails then.
            os.link(unfinished, path)
        except FileExistsError:
            return False
        finally:
            with suppress(FileNotFoundError):
                unfinished.unlink()
        _sync_folder(path.parent)
        return True

    def get(self, key: str) -> bytes:
        """See `UsageStore`."""
        return self._path(key).read_bytes()

    def read_part(self, key: str, start: int, length: int) -> bytes:
        """See `PartStore`."""
        with self._path(key).open("rb") as file:
            file.seek(start)
            return file.read(length)

    def read_end(self, key: str, length: int) -> tuple[bytes, int]:
        """See `PartStore`."""
        with self._path(key).open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - length))
            return file.read(), size

    def list(self, prefix: str) -> Iterator[str]:
        """See `UsageStore`."""
        folder, _, _ = prefix.rpartition("/")
        yield from self._keys_below(folder, prefix)

    def remove(self, prefix: str) -> int:
        """See `RemovingStore`. A prefix that ends with a slash is a folder, and goes as a whole."""
        keys = list(self.list(prefix))
        for key in keys:
            self._path(key).unlink(missing_ok=True)
        folder = self.root / prefix.rpartition("/")[0]
        if prefix.endswith("/"):
            shutil.rmtree(folder, ignore_errors=True)
            folder = folder.parent
        while folder != self.root and self.root in folder.parents:
            try:
                folder.rmdir()
            except OSError:
                break
            folder = folder.parent
        return len(keys)

    def _keys_below(self, folder: str, prefix: str) -> Iterator[str]:
        try:
            entries = sorted(os.scandir(self.root / folder), key=_sorted_as_key)
        except (FileNotFoundError, NotADirectoryError):
            return
        for entry in entries:
            key = f"{folder}/{entry.name}" if folder else entry.name
            if entry.name.startswith(".") or not key.startswith(prefix):
                continue
            if entry.is_dir():
                yield from self._keys_below(key, prefix)
            else:
                yield key

    def _path(self, key: str) -> Path:
        parts = PurePosixPath(key).parts
        if not parts or key != "/".join(parts) or any(part.startswith(".") for part in parts):
            message = f"{key!r} is no key"
            raise UsageFormatError(message)
        return self.root.joinpath(*parts)


def list_manifests(store: UsageStore, cell: str, *, since_ms: int, until_ms: int) -> Iterator[str]:
    """Keys of the manifests that were emitted in [since, until), in the order of emission.

    Times are milliseconds since 1970.
    """
    for day_ms in range(since_ms - since_ms % DAY_MS, until_ms, DAY_MS):
        for key in store.list(day_prefix(cell, day_of(day_ms))):
            parsed = parse_key(key)
            if parsed and parsed.is_manifest and since_ms <= parsed.emitted_at_ms < until_ms:
                yield key


def read_manifest(store: UsageStore, key: str, *, verify: bool) -> UsageManifest:
    """Reads a manifest; with `verify` also its data file, to compare size and digest.

    Raises `UsageFormatError` where one of the two is damaged, and `FileNotFoundError` where one is
    missing. In both cases the caller must not count the manifest's coverage.
    """
    manifest = parse_manifest(store.get(key))
    if verify and not matches_manifest(manifest, store.get(manifest.key)):
        message = f"{manifest.key} is not the file of its manifest"
        raise UsageFormatError(message)
    return manifest


def _sorted_as_key(entry: os.DirEntry[str]) -> str:
    # Keys below a folder continue with a slash, and must sort by it.
    return f"{entry.name}/" if entry.is_dir() else entry.name


def _write_durably(path: Path, data: bytes) -> None:
    with path.open("xb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def _make_folder(folder: Path) -> None:
    """Makes a folder durably: its parent is synced, so that a crash cannot remove it."""
    if folder.is_dir():
        return
    _make_folder(folder.parent)
    folder.mkdir(exist_ok=True)
    _sync_folder(folder.parent)


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
