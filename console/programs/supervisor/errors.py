"""Why a start did not come about, as one sentence for the person who typed `make up`."""

from __future__ import annotations

import errno
from collections.abc import Iterable
from pathlib import Path

# What the C library, and so every child, says of a full disk or quota.
_FULL = ("No space left on device", "Disk quota exceeded", "File too large")
_FULL_ERRORS = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}


class StartError(Exception):
    """A start that cannot go on. `lines`: the last lines of whoever failed, oldest first."""

    def __init__(self, sentence: str, lines: Iterable[str] = ()) -> None:
        super().__init__(sentence)
        self.sentence = sentence
        self.lines = tuple(lines)


def disk_full_sentence(folder: Path) -> str:
    """What to say when something could not be written for want of room."""
    return (
        f"The disk that holds {folder} is full: make room, or set FRESHET_HOME to a folder on"
        " another disk. Nothing is lost; the next start goes on from here."
    )


def names_full_disk(lines: Iterable[str]) -> bool:
    """Tells whether a program's last lines say that the disk is full."""
    return any(phrase in line for line in lines for phrase in _FULL)


def from_os_error(error: OSError, folder: Path) -> StartError:
    """The sentence for a failed write or read of ours below `folder`."""
    if error.errno in _FULL_ERRORS:
        return StartError(disk_full_sentence(folder))
    if error.errno in {errno.EACCES, errno.EPERM, errno.EROFS}:
        where = error.filename or folder
        return StartError(
            f"Freshet may not write to {where}: set FRESHET_HOME to a folder of yours."
        )
    return StartError(f"Freshet cannot use {folder}: {error}.")
