"""Where usage files lie: what a store must do, and a store that is a folder."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path, PurePosixPath
from typing import Protocol

from metering.events.errors import UsageFormatError
from metering.events.keys import day_prefix, parse_key
from metering.events.manifests import UsageManifest, matches, parse_manifest
from metering.events.times import DAY_MS, day_of

# Files that are being written. No key lies in it.
_UNFINISHED = ".unfinished"


class UsageStore(Protocol):
    """Immutable objects by key. Every call raises `OSError` where the store cannot be reached."""

    def put_new(self, key: str, data: bytes) -> bool:
        """Stores an object unless there is one of this key; False where there is, of any content.

        Once it returns the object is durable, and at no time is there a part of it.
        """

    def get(self, key: str) -> bytes:
        """An object. Raises `FileNotFoundError`."""

    def list(self, prefix: str) -> Iterator[str]:
        """The keys that begin with `prefix`, in order."""


class FolderUsageStore:
    """A store that is a folder, which is made at the first write. For any number of processes."""

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
            # Unlike a rename this fails where the name is taken.
            os.link(unfinished, path)
        except FileExistsError:
            return False
        finally:
            with suppress(FileNotFoundError):
                unfinished.unlink()
        _sync(path.parent)
        return True

    def get(self, key: str) -> bytes:
        """See `UsageStore`."""
        return self._path(key).read_bytes()

    def list(self, prefix: str) -> Iterator[str]:
        """See `UsageStore`."""
        folder, _, _ = prefix.rpartition("/")
        yield from self._below(folder, prefix)

    def _below(self, folder: str, prefix: str) -> Iterator[str]:
        try:
            entries = sorted(os.scandir(self.root / folder), key=_sorted_as_key)
        except (FileNotFoundError, NotADirectoryError):
            return
        for entry in entries:
            key = f"{folder}/{entry.name}" if folder else entry.name
            if entry.name.startswith(".") or not key.startswith(prefix):
                continue
            if entry.is_dir():
                yield from self._below(key, prefix)
            else:
                yield key

    def _path(self, key: str) -> Path:
        parts = PurePosixPath(key).parts
        if not parts or key != "/".join(parts) or any(part.startswith(".") for part in parts):
            message = f"{key!r} is no key"
            raise UsageFormatError(message)
        return self.root.joinpath(*parts)


def list_manifests(store: UsageStore, cell: str, *, since_ms: int, until_ms: int) -> Iterator[str]:
    """Keys of the manifests that were emitted in [since, until), in the order of emission."""
    for day_ms in range(since_ms - since_ms % DAY_MS, until_ms, DAY_MS):
        for key in store.list(day_prefix(cell, day_of(day_ms))):
            parsed = parse_key(key)
            if parsed and parsed.is_manifest and since_ms <= parsed.emitted_at_ms < until_ms:
                yield key


def read_manifest(store: UsageStore, key: str, *, verify: bool) -> UsageManifest:
    """A manifest; with `verify` only if its data file is there and unharmed.

    Raises `UsageFormatError` where one of the two is damaged, `FileNotFoundError` where one is
    missing: its usage then is not there, and its coverage must not be counted.
    """
    manifest = parse_manifest(store.get(key))
    if verify and not matches(manifest, store.get(manifest.key)):
        message = f"{manifest.key} is not the file of its manifest"
        raise UsageFormatError(message)
    return manifest


def _sorted_as_key(entry: os.DirEntry[str]) -> str:
    # A folder's keys go on with a slash.
    return f"{entry.name}/" if entry.is_dir() else entry.name


def _write_durably(path: Path, data: bytes) -> None:
    with path.open("xb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def _make_folder(folder: Path) -> None:
    """Makes a folder that a crash cannot take away again."""
    if folder.is_dir():
        return
    _make_folder(folder.parent)
    folder.mkdir(exist_ok=True)
    _sync(folder.parent)


def _sync(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
