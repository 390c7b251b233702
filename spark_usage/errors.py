"""Errors that end a job without a result. Faults of the data are none: the report has them."""

from __future__ import annotations


class JobError(Exception):
    """The job cannot run with these arguments; the text says why, in one sentence."""


class IncompleteRows(Exception):
    """Some rows lack what identifies them. The files that hold them must be found and left out."""


class Interrupted(KeyboardInterrupt):
    """A signal asked the job to end."""

    def __init__(self, signal_number: int) -> None:
        super().__init__(f"ended by signal {signal_number}")
        self.signal_number = signal_number
