"""The errors of calls to a broker, by what the caller can do about them.

- `UnavailableError`: no answer came in time, or no connection, so the call may or may not have
  taken effect.
- `NotReadyError`: a broker answered that it cannot yet, or not any more: it starts, moves or stops.
  The call may or may not have taken effect.
- `RefusedError`: the broker answered with an error, whose Kafka name is `name`. The same call gets
  the same answer until something changes. Its subclasses are refusals that callers handle by
  themselves.
- `UndecodableError`: the answer cannot be decoded, and a repeated call gets the same answer.
- `BusyError`: the call was not made, or not finished, because too many are being made.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from brokers import _core


class KafkaCallError(Exception):
    """A call to a broker failed. `name` is Kafka's name of the error, or one of our own."""

    def __init__(self, name: str, detail: str) -> None:
        super().__init__(f"{name}: {detail}")
        self.name = name
        self.detail = detail


class UnavailableError(KafkaCallError):
    """No answer came in time, or no connection, so the outcome is unknown."""


class NotReadyError(KafkaCallError):
    """A broker answered that it cannot yet, or not any more."""


class BusyError(KafkaCallError):
    """This process makes as many calls as it may at a time."""


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


class ThrottledError(RefusedError):
    """Whoever pays for the call has used up their quota for some seconds."""


# By the kind of the client's error: the class, and a name for those that no broker answered.
KINDS: dict[str, tuple[type[KafkaCallError], str]] = {
    "unreachable": (UnavailableError, "NETWORK_EXCEPTION"),
    "timed_out": (UnavailableError, "REQUEST_TIMED_OUT"),
    "passing": (NotReadyError, ""),
    "busy": (BusyError, "TOO_MANY_CALLS"),
    "undecodable": (UndecodableError, "CORRUPT_MESSAGE"),
    "refused": (RefusedError, ""),
}
# By Kafka's name of the error.
REFUSALS: dict[str, type[RefusedError]] = {
    "NON_EMPTY_GROUP": GroupActiveError,
    "UNKNOWN_MEMBER_ID": GroupActiveError,
    "ILLEGAL_GENERATION": GroupActiveError,
    "GROUP_ID_NOT_FOUND": UnknownGroupError,
    "THROTTLING_QUOTA_EXCEEDED": ThrottledError,
    "UNKNOWN_TOPIC_OR_PARTITION": UnknownPartitionError,
}


@contextmanager
def kafka_errors() -> Iterator[None]:
    """Raises a `KafkaCallError` for an error of the client that its block raises."""
    try:
        yield
    except _core.KafkaError as error:
        kind, name = KINDS[error.kind]
        name = error.name or name
        if kind is RefusedError:
            kind = REFUSALS.get(name, RefusedError)
        raise kind(name, str(error)) from error
