"""Why a job ends without a result. What is wrong with the data is no error: the report says it."""

from __future__ import annotations


class JobError(Exception):
    """A job that cannot be done as asked; the text says why, in one sentence."""


class IncompleteRows(Exception):
    """Rows came up that lack their identity: the files that hold them must be found."""


class Interrupted(KeyboardInterrupt):
    """A signal asked the job to end."""

    def __init__(self, signal_number: int) -> None:
        super().__init__(f"ended by signal {signal_number}")
        self.signal_number = signal_number
