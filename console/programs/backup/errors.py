"""The error with which a backup or a restore ends."""

from __future__ import annotations

from collections.abc import Iterable


class BackupError(Exception):
    """A backup or a restore cannot go on. `sentence` says why and what to do.

    `lines`: the last lines of a program that failed, oldest first.
    """

    def __init__(self, sentence: str, lines: Iterable[str] = ()) -> None:
        super().__init__(sentence)
        self.sentence = sentence
        self.lines = tuple(lines)
