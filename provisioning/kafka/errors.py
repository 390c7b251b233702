"""What can go wrong between the control plane and a broker, by what the caller can do about it.

`UnavailableError`: nobody answered in time; what was asked may or may not have been done.
`RefusedError`: the broker answered no; `name` is Kafka's name of the error, and asking again
without a change gives the same answer. Its children are the refusals that callers tell apart.
`UndecodableError`: what brokers sent cannot be decoded, and will not be when it is asked for again.
`WorkerDiedError`: it ended the process that read it; what was asked may or may not have been done.
`WorkersBusyError`: nothing was asked, because too much is asked already.
"""

from __future__ import annotations


class KafkaCallError(Exception):
    """A call to a broker that gave no result. `name` is Kafka's name of the error."""

    def __init__(self, name: str, detail: str) -> None:
        super().__init__(f"{name}: {detail}")
        self.name = name
        self.detail = detail


class UnavailableError(KafkaCallError):
    """Nobody answered in time: the outcome is unknown."""


class WorkerDiedError(KafkaCallError):
    """The process that read the brokers' answers ended: the outcome is unknown."""


class WorkersBusyError(KafkaCallError):
    """As many calls as this process may make at a time are on their way. Nothing was asked."""


class UndecodableError(KafkaCallError):
    """What the brokers sent is damaged, or of a format that is not known here."""


class RefusedError(KafkaCallError):
    """The broker said no."""


class GroupActiveError(RefusedError):
    """The group has members; what was asked needs it empty."""


class UnknownGroupError(RefusedError):
    """There is no such group."""


class UnknownPartitionError(RefusedError):
    """There is no such topic, or it has no such partition."""


# What a worker may answer instead of a result.
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
