"""The engine's operations on files of the shared file system, made by the same system calls."""

from __future__ import annotations

import mmap
import os
from collections.abc import Callable
from pathlib import Path

# Reads past the cache are aligned to this; blocks of a lane too.
PAGE = 4096


def sync_folder(folder: Path) -> None:
    """Makes the names in a folder durable."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def create_file(path: Path, content: bytes, *, durable: bool = True) -> None:
    """Makes a file whose name must be free; with `durable`, content and name are synced."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
    try:
        write_all(descriptor, 0, content)
        if durable:
            os.fsync(descriptor)
    finally:
        os.close(descriptor)
    if durable:
        sync_folder(path.parent)


def publish_file(path: Path, content: bytes, *, durable: bool = True) -> None:
    """Makes a whole file under a name that must be free: nobody sees a part of it."""
    draft = path.with_name(f"draft-{os.urandom(8).hex()}")
    create_file(draft, content, durable=durable)
    try:
        os.link(draft, path)
        if durable:
            sync_folder(path.parent)
    finally:
        draft.unlink()


def write_all(descriptor: int, position: int, content: bytes) -> None:
    """Writes all of it at a position."""
    while content:
        written = os.pwrite(descriptor, content, position)
        position, content = position + written, content[written:]


class Held:
    """An open file, written through one descriptor and read past the cache through another."""

    def __init__(self, path: Path, *, is_remote: Callable[[str], bool]) -> None:
        self._written = os.open(path, os.O_RDWR | os.O_CLOEXEC)
        self._read = self._written
        try:
            self._read = os.open(path, os.O_RDONLY | os.O_DIRECT | os.O_CLOEXEC)
        except OSError:
            # One machine has one cache, which all its programs share.
            if is_remote(str(path.parent)):
                os.close(self._written)
                raise

    def write(self, position: int, content: bytes, *, durable: bool = True) -> None:
        """Writes at a position; with `durable`, the content is synced."""
        write_all(self._written, position, content)
        if durable:
            os.fdatasync(self._written)

    def read(self, position: int = 0, length: int = PAGE) -> bytes:
        """The bytes that the server has at a position, read past this machine's cache."""
        with mmap.mmap(-1, length) as buffer:  # aligned to a page, as such reads must be
            count = os.preadv(self._read, [buffer], position)
            return buffer[:count]

    def close(self) -> None:
        """Closes it."""
        os.close(self._written)
        if self._read != self._written:
            os.close(self._read)

    def __enter__(self) -> Held:
        """The file is open already."""
        return self

    def __exit__(self, *_: object) -> None:
        """Closes it."""
        self.close()


def read_whole(path: Path) -> bytes:
    """All of a small file, as a reader that opens it now sees it."""
    return path.read_bytes()


def list_names(folder: Path) -> list[str]:
    """Names in a folder, sorted."""
    return sorted(entry.name for entry in folder.iterdir())
