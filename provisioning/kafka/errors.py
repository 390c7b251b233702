"""The errors of calls to a broker, by what the caller can do about them.

- `UnavailableError`: no answer came in time, so the call may or may not have taken effect.
- `RefusedError`: the broker answered with an error, whose Kafka name is `name`. The same call gets
  the same answer until something changes. Its subclasses are refusals that callers handle by
  themselves.
- `UndecodableError`: the answer cannot be decoded, and a repeated call gets the same answer.
- `WorkerDiedError`: the answer ended the process that read it, so the call may or may not have
  taken effect.
- `WorkersBusyError`: the call was not made, because too many are being made already.
"""

from __future__ import annotations


class KafkaCallError(Exception):
    """A call to a broker failed. `name` is Kafka's name of the error, or one of our own."""

    def __init__(self, name: str, detail: str) -> None:
        super().__init__(f"{name}: {detail}")
        self.name = name
        self.detail = detail


class UnavailableError(KafkaCallError):
    """No answer came in time, so the outcome is unknown."""


class WorkerDiedError(KafkaCallError):
    """The process that read the brokers' answers ended, so the outcome is unknown."""


class WorkersBusyError(KafkaCallError):
    """This process makes as many calls as it may at a time, so the call was not made."""


class UndecodableError(KafkaCallError):
    """The brokers' answer is damaged, or of an unknown format."""


class RefusedError(KafkaCallError):
    """The broker answered with an error."""


class GroupActiveError(RefusedError):
    """The group has members, and the call needs a group without any."""


class UnknownGroupError(RefusedError):
    """The group does not exist."""


class UnknownPartitionError(RefusedError):
    """The topic does not exist, or has no such partition."""


# The errors that a worker may answer instead of a result, by name.
ANSWERED = {
    error.__name__: error
    for error in (
        UnavailableError,
        UndecodableError,
        RefusedError,
        GroupActiveError,
        UnknownGroupError,
        UnknownPartitionError,
    )
}
