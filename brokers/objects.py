"""Objects of a cell from Python, in a folder or in S3: small files of parts of the service, and
removing what a cluster stored.

Usage files have a store of their own, `metering.events.store`, which stands on nothing of this
project.
"""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path, PurePosixPath
from typing import Protocol

from brokers.locations import object_location

__all__ = ["FolderObjects", "Objects", "open_objects", "remove_below"]

# The folder of objects that are being written. No key lies in it, because of its dot.
UNFINISHED = ".unfinished"


class Objects(Protocol):
    """Immutable objects by key. Every call raises `OSError` where the store cannot be reached."""

    def put_new(self, key: str, data: bytes) -> bool:
        """Stores an object durably unless its key is taken; returns False where it is."""

    def read(self, key: str, bytes_max: int) -> bytes:
        """The first `bytes_max` bytes of an object. Raises `FileNotFoundError`."""

    def list(self, prefix: str) -> Iterator[str]:
        """The keys that begin with `prefix`, in order."""

    def remove(self, prefix: str) -> int:
        """Removes all objects whose keys begin with `prefix`; returns how many."""


class FolderObjects:
    """Objects in a folder, which the first write makes. Any number of processes may use it."""

    def __init__(self, root: str | Path) -> None:
        self.root = Path(root)

    def put_new(self, key: str, data: bytes) -> bool:
        """See `Objects`."""
        path = self._path(key)
        unfinished = self.root / UNFINISHED / f"{os.getpid()}-{secrets.token_hex(8)}"
        for folder in (unfinished.parent, path.parent):
            folder.mkdir(parents=True, exist_ok=True)
        try:
            with unfinished.open("xb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            # A link, because a rename would replace an object; a link fails then.
            os.link(unfinished, path)
        except FileExistsError:
            return False
        finally:
            unfinished.unlink(missing_ok=True)
        for folder in (path.parent, *path.parent.parents):
            _sync_folder(folder)
            if folder == self.root:
                break
        return True

    def read(self, key: str, bytes_max: int) -> bytes:
        """See `Objects`."""
        with self._path(key).open("rb") as file:
            return file.read(bytes_max)

    def list(self, prefix: str) -> Iterator[str]:
        """See `Objects`."""
        folder = prefix.rpartition("/")[0]
        yield from self._keys_below(folder, prefix)

    def remove(self, prefix: str) -> int:
        """See `Objects`. Folders that are left empty go too."""
        removed = 0
        for key in list(self.list(prefix)):
            path = self._path(key)
            path.unlink(missing_ok=True)
            removed += 1
            with suppress(OSError):
                for folder in path.parents:
                    if folder == self.root:
                        break
                    folder.rmdir()
        return removed

    def _keys_below(self, folder: str, prefix: str) -> Iterator[str]:
        try:
            entries = sorted(os.scandir(self.root / folder), key=_as_sorted)
        except (FileNotFoundError, NotADirectoryError):
            return
        for entry in entries:
            key = f"{folder}/{entry.name}" if folder else entry.name
            is_folder = entry.is_dir()
            within = key.startswith(prefix) or (is_folder and f"{key}/".startswith(prefix))
            if entry.name.startswith(".") or not within:
                continue
            if is_folder:
                yield from self._keys_below(key, prefix)
            else:
                yield key

    def _path(self, key: str) -> Path:
        parts = PurePosixPath(key).parts
        if not parts or key != "/".join(parts) or any(part.startswith(".") for part in parts):
            message = f"{key!r} is no key"
            raise ValueError(message)
        return self.root.joinpath(*parts)


def open_objects(location: str) -> Objects:
    """The objects at a location (see `brokers.locations`). Nothing is read yet.

    Raises `ConfigError` for a location that is none.
    """
    place = object_location(location)
    if isinstance(place, Path):
        return FolderObjects(place)
    # Its libraries take half a second to import, which a process without S3 need not spend.
    from brokers.s3 import S3Objects  # noqa: PLC0415

    return S3Objects(place)


def remove_below(location: str, folder: str) -> None:
    """Removes a folder of a bucket, be it a folder or in S3. Repeating it changes nothing.

    Raises `OSError` where some of it could not be removed.
    """
    place = object_location(location)
    if isinstance(place, Path):
        with suppress(FileNotFoundError):
            shutil.rmtree(place / folder)
        return
    open_objects(location).remove(f"{folder}/")


def _as_sorted(entry: os.DirEntry[str]) -> str:
    # Keys below a folder continue with a slash, and sort by it.
    return f"{entry.name}/" if entry.is_dir() else entry.name


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
