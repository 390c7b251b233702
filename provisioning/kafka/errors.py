"""What can go wrong between the control plane and a broker, by what the caller can do about it.

`UnavailableError`: nobody answered in time; what was asked may or may not have been done.
`RefusedError`: the broker answered no; `name` is Kafka's name of the error, and asking again
without a change gives the same answer. Its children are the refusals that callers tell apart.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from confluent_kafka import KafkaError, KafkaException

# Kafka's own errors that mean "ask again": the broker starts, moves or stops.
RETRIABLE = frozenset(
    {
        "LEADER_NOT_AVAILABLE",
        "NOT_LEADER_FOR_PARTITION",
        "NOT_LEADER_OR_FOLLOWER",
        "REQUEST_TIMED_OUT",
        "BROKER_NOT_AVAILABLE",
        "REPLICA_NOT_AVAILABLE",
        "NETWORK_EXCEPTION",
        "COORDINATOR_LOAD_IN_PROGRESS",
        "COORDINATOR_NOT_AVAILABLE",
        "NOT_COORDINATOR",
        "OFFSET_NOT_AVAILABLE",
        "KAFKA_STORAGE_ERROR",
        "UNKNOWN_SERVER_ERROR",
    }
)
# librdkafka's names for the same facts.
GROUP_ACTIVE = frozenset({"NON_EMPTY_GROUP", "UNKNOWN_MEMBER_ID", "ILLEGAL_GENERATION"})
UNKNOWN_PARTITION = frozenset(
    {"UNKNOWN_TOPIC_OR_PART", "UNKNOWN_TOPIC_OR_PARTITION", "_UNKNOWN_TOPIC", "_UNKNOWN_PARTITION"}
)


class KafkaCallError(Exception):
    """A call to a broker that gave no result. `name` is Kafka's name of the error."""

    def __init__(self, name: str, detail: str) -> None:
        super().__init__(f"{name}: {detail}")
        self.name = name
        self.detail = detail


class UnavailableError(KafkaCallError):
    """Nobody answered in time: the outcome is unknown."""


class RefusedError(KafkaCallError):
    """The broker said no."""


class GroupActiveError(RefusedError):
    """The group has members; what was asked needs it empty."""


class UnknownGroupError(RefusedError):
    """There is no such group."""


class UnknownPartitionError(RefusedError):
    """There is no such topic, or it has no such partition."""


def error_of(error: KafkaError) -> KafkaCallError:
    """The error for one of librdkafka's. Names with a `_` in front are librdkafka's own.

    Of these only what tells of a missing topic is an answer; the rest are connections, time-outs
    and queues, after which nobody knows what the broker did.
    """
    name, detail = str(error.name()), str(error.str())
    if name in UNKNOWN_PARTITION:
        return UnknownPartitionError("UNKNOWN_TOPIC_OR_PARTITION", detail)
    if name in GROUP_ACTIVE:
        return GroupActiveError(name, detail)
    if name.startswith("_") or name in RETRIABLE:
        return UnavailableError(name, detail)
    if name == "GROUP_ID_NOT_FOUND":
        return UnknownGroupError(name, detail)
    return RefusedError(name, detail)


@contextmanager
def kafka_errors() -> Iterator[None]:
    """Raises what librdkafka raises inside as a `KafkaCallError`."""
    try:
        yield
    except KafkaException as error:
        raise error_of(error.args[0]) from error
