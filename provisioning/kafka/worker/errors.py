"""Converts errors of librdkafka to those of `provisioning.kafka.errors`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from confluent_kafka import KafkaError, KafkaException

from provisioning.kafka.errors import (
    GroupActiveError,
    KafkaCallError,
    RefusedError,
    UnavailableError,
    UndecodableError,
    UnknownGroupError,
    UnknownPartitionError,
)

# Kafka's errors after which a client retries: the broker starts, moves or stops.
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
# librdkafka's errors for records that it cannot decode.
UNDECODABLE = frozenset({"_BAD_COMPRESSION", "_BAD_MSG", "_UNDERFLOW", "CORRUPT_MESSAGE"})
# Kafka's and librdkafka's names for the same error.
GROUP_ACTIVE = frozenset({"NON_EMPTY_GROUP", "UNKNOWN_MEMBER_ID", "ILLEGAL_GENERATION"})
UNKNOWN_PARTITION = frozenset(
    {"UNKNOWN_TOPIC_OR_PART", "UNKNOWN_TOPIC_OR_PARTITION", "_UNKNOWN_TOPIC", "_UNKNOWN_PARTITION"}
)


def error_of(error: KafkaError) -> KafkaCallError:
    """The `KafkaCallError` for an error of librdkafka.

    Names that begin with `_` are librdkafka's own. Of these only the ones for an unknown topic
    stand for an answer of a broker. The others are about connections, timeouts and queues, so the
    outcome of the call is unknown.
    """
    name, detail = str(error.name()), str(error.str())
    if name in UNKNOWN_PARTITION:
        return UnknownPartitionError("UNKNOWN_TOPIC_OR_PARTITION", detail)
    if name in GROUP_ACTIVE:
        return GroupActiveError(name, detail)
    if name in UNDECODABLE:
        return UndecodableError(name, detail)
    if name.startswith("_") or name in RETRIABLE:
        return UnavailableError(name, detail)
    if name == "GROUP_ID_NOT_FOUND":
        return UnknownGroupError(name, detail)
    return RefusedError(name, detail)


@contextmanager
def kafka_errors() -> Iterator[None]:
    """Raises a `KafkaCallError` for each `KafkaException` that its block raises."""
    try:
        yield
    except KafkaException as error:
        raise error_of(error.args[0]) from error
