"""The error with which a start ends: one sentence for the person who typed `make up`."""

from __future__ import annotations

import errno
from collections.abc import Iterable
from pathlib import Path

# The messages of the C library, and so of every child, for a full disk or quota.
_FULL = ("No space left on device", "Disk quota exceeded", "File too large")
_FULL_ERRORS = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}


class StartError(Exception):
    """A start cannot go on. `sentence` says why and what to do.

    `lines`: the last lines of the child that failed, oldest first.
    """

    def __init__(self, sentence: str, lines: Iterable[str] = ()) -> None:
        super().__init__(sentence)
        self.sentence = sentence
        self.lines = tuple(lines)


def disk_full_sentence(folder: Path) -> str:
    """Returns the sentence for a disk without room."""
    return (
        f"The disk that holds {folder} is full: make room, or set FRESHET_HOME to a folder on"
        " another disk. Nothing is lost; the next start goes on from here."
    )


def names_full_disk(lines: Iterable[str]) -> bool:
    """Returns whether a program's last lines say that the disk is full."""
    return any(phrase in line for line in lines for phrase in _FULL)


def from_os_error(error: OSError, folder: Path) -> StartError:
    """Returns the error for a read or write of the supervisor below `folder` that failed."""
    if error.errno in _FULL_ERRORS:
        return StartError(disk_full_sentence(folder))
    if error.errno in {errno.EACCES, errno.EPERM, errno.EROFS}:
        where = error.filename or folder
        return StartError(
            f"Freshet may not write to {where}: set FRESHET_HOME to a folder of yours."
        )
    return StartError(f"Freshet cannot use {folder}: {error}.")
