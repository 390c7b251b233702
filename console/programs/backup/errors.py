"""What a person reads when a backup or a restore does not go on."""

from __future__ import annotations

from collections.abc import Iterable


class BackupError(Exception):
    """A sentence that says what to do. `lines`: the last lines of a program that failed."""

    def __init__(self, sentence: str, lines: Iterable[str] = ()) -> None:
        super().__init__(sentence)
        self.sentence = sentence
        self.lines = tuple(lines)
