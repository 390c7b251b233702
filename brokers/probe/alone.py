"""Promises of a folder that one process can check, in a few milliseconds."""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path

from brokers import _core
from brokers.probe import operations as do
from brokers.probe.operations import PAGE, Held

PREFIX = "probe-"
# Folders that killed probes left are removed once they are this old.
LEFTOVER_SECONDS = 3600.0
# A full file system is fit all the same; the engine reports it where it matters.
FULL = {errno.ENOSPC, errno.EDQUOT}

OLD, NEW = b"old".ljust(PAGE, b"."), b"new".ljust(PAGE, b".")


class UnfitError(Exception):
    """A promise that a folder breaks, with the reason."""

    def __init__(self, promise: str, reason: str) -> None:
        super().__init__(f"{promise}: {reason}")
        self.promise = promise
        self.reason = reason


class BrokenPromiseError(Exception):
    """A check saw something else than the promise."""


def expect(kept: bool, otherwise: str) -> None:
    """Raises `BrokenPromiseError` with the text `otherwise` unless `kept`."""
    if not kept:
        raise BrokenPromiseError(otherwise)


def open_held(path: Path) -> Held:
    """Opens a file as the engine does."""
    return Held(path, is_remote=_core.is_remote)


def expect_taken(make: Callable[[Path, bytes], None], path: Path, otherwise: str) -> None:
    """Checks that `make` refuses a name that is taken, and leaves its file as it is."""
    before = do.read_whole(path)
    try:
        make(path, NEW)
    except FileExistsError:
        expect(do.read_whole(path) == before, "a refused name has other content afterwards")
        return
    raise BrokenPromiseError(otherwise)


def create_file(path: Path, content: bytes) -> None:
    """Makes a file that need not outlive the machine: a sync takes longer than all else here."""
    do.create_file(path, content, durable=False)


def check_create(folder: Path) -> None:
    """Exclusive creation: lane files stand on it."""
    path = folder / "created"
    create_file(path, OLD)
    expect_taken(create_file, path, "a name that is taken was made again (O_EXCL)")


def check_folder(folder: Path) -> None:
    """An incarnation is claimed by making its folder."""
    path = folder / "folder"
    path.mkdir()
    try:
        path.mkdir()
    except FileExistsError:
        return
    message = "a folder that exists was made again (mkdir)"
    raise BrokenPromiseError(message)


def check_link(folder: Path) -> None:
    """SEAL files and leftovers are published by links."""

    def publish_file(path: Path, content: bytes) -> None:
        do.publish_file(path, content, durable=False)

    path = folder / "published"
    publish_file(path, OLD)
    expect(do.read_whole(path) == OLD, "a published file has other content")
    expect_taken(publish_file, path, "a link took a name that is taken")


def check_write(folder: Path) -> None:
    """What was written and synced can be read past the cache."""
    path = folder / "written"
    do.create_file(path, bytes(2 * PAGE))
    with open_held(path) as held:
        held.write(PAGE, NEW)
        expect(held.read(PAGE) == NEW, "a synced write cannot be read past the cache")
        expect(held.read(0) == bytes(PAGE), "bytes beside a write have changed")


def check_held(folder: Path) -> None:
    """The owner token: an overwrite is seen by whoever holds the file open."""
    path = folder / "token"
    create_file(path, OLD)
    with open_held(path) as owner, open_held(path) as successor:
        expect(owner.read() == OLD, "a new file has other content")
        successor.write(0, NEW, durable=False)
        expect(owner.read() == NEW, "an open file does not show what another one wrote to it")


def check_rename(folder: Path) -> None:
    """A file that is renamed has its new name alone, and stays the file that is held open."""
    old, new = folder / "old", folder / "renamed"
    create_file(old, OLD)
    with open_held(old) as held:
        old.rename(new)
        expect(not old.exists(), "a renamed file keeps its old name")
        expect(do.read_whole(new) == OLD, "a renamed file has other content")
        expect(held.read() == OLD, "a renamed file that is open cannot be read")


def check_list(folder: Path) -> None:
    """A listing has what was made and lacks what was removed."""
    inner = folder / "listed"
    inner.mkdir()
    names = [f"{number}" for number in range(4)]
    for name in names:
        create_file(inner / name, b"")
    expect(do.list_names(inner) == names, "a listing lacks names that were made")
    removed = inner / names.pop()
    removed.unlink()
    expect(do.list_names(inner) == names, "a listing has a name that was removed")
    expect(not removed.exists(), "a removed file can still be found")


Check = Callable[[Path], None]

ALONE: Mapping[str, Check] = {
    "exclusive creation": check_create,
    "exclusive folders": check_folder,
    "links": check_link,
    "synced writes": check_write,
    "overwrites seen through an open file": check_held,
    "renames": check_rename,
    "listings": check_list,
}


def try_promise(promise: str, check: Callable[[], None]) -> None:
    """Raises `UnfitError` where a promise is not kept; a full file system breaks none."""
    try:
        check()
    except BrokenPromiseError as error:
        raise UnfitError(promise, str(error)) from error
    except OSError as error:
        if error.errno not in FULL:
            raise UnfitError(promise, describe_error(error)) from error


def describe_error(error: OSError) -> str:
    """An error of the system without the names of the probe's own files."""
    name = errno.errorcode.get(error.errno or 0, "error")
    return f"{name}: {error.strerror or error}"


@contextmanager
def own_folder(folder: Path) -> Iterator[Path]:
    """A folder for the probe's files, removed at the end. Raises `UnfitError` without one."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        remove_leftovers(folder)
        own = folder / f"{PREFIX}{os.urandom(8).hex()}"
        own.mkdir()
    except OSError as error:
        raise UnfitError("a folder of its own", describe_error(error)) from error
    try:
        yield own
    finally:
        remove_folder(own)


def remove_folder(folder: Path) -> None:
    """Removes a folder with its content, as far as that is possible."""
    with suppress(OSError):
        for entry in list(os.scandir(folder)):
            if entry.is_dir(follow_symlinks=False):
                remove_folder(Path(entry.path))
            else:
                Path(entry.path).unlink()
        folder.rmdir()


def remove_leftovers(folder: Path) -> None:
    """Removes folders that killed probes left long ago."""
    due = time.time() - LEFTOVER_SECONDS
    for left in folder.glob(f"{PREFIX}*"):
        with suppress(OSError):
            if left.stat().st_mtime < due:
                remove_folder(left)


def is_full(folder: Path) -> bool:
    """Whether nothing can be made there because the file system is full."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        return os.statvfs(folder).f_bavail == 0
    except OSError as error:
        return error.errno in FULL


def probe_alone(folder: Path) -> None:
    """Raises `UnfitError` at the first promise that a folder breaks."""
    if is_full(folder):
        return
    with own_folder(folder) as own:
        for promise, check in ALONE.items():
            try_promise(promise, partial(check, own))
