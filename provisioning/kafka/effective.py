"""Waits until running brokers know of a change in the metadata store.

Brokers follow the store within tens of milliseconds. A request waits for that, so that whatever it
reports as created can be used at once.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable

from brokers import _core
from provisioning.kafka.access import Access
from provisioning.kafka.errors import KafkaCallError, UnknownPartitionError
from provisioning.kafka.offsets import partitions_of
from provisioning.kafka.shapes import AclFields

# How long to wait for a change to take effect.
EFFECT_S = 2.0
LOOK_EVERY_S = 0.02
# Kafka's names of the codes in answers, from the first code on.
RESOURCE_TYPES = (
    "UNKNOWN", "ANY", "TOPIC", "GROUP", "CLUSTER", "TRANSACTIONAL_ID", "DELEGATION_TOKEN", "USER",
)  # fmt: skip
PATTERN_TYPES = ("UNKNOWN", "ANY", "MATCH", "LITERAL", "PREFIXED")
OPERATIONS = (
    "UNKNOWN", "ANY", "ALL", "READ", "WRITE", "CREATE", "DELETE", "ALTER", "DESCRIBE",
    "CLUSTER_ACTION", "DESCRIBE_CONFIGS", "ALTER_CONFIGS", "IDEMPOTENT_WRITE", "CREATE_TOKENS",
    "DESCRIBE_TOKENS", "TWO_PHASE_COMMIT",
)  # fmt: skip
PERMISSIONS = ("UNKNOWN", "ANY", "DENY", "ALLOW")


def wait_acls(access: Access, acls: Iterable[AclFields], timeout_s: float = EFFECT_S) -> bool:
    """Waits until the brokers have these ACLs. Returns False where `timeout_s` passes first."""
    required = set(acls)
    principals = sorted({entry[3] for entry in required})

    def is_there(client: _core.KafkaClient) -> bool:
        known: set[AclFields] = set()
        for principal in principals:
            known |= {_named(codes) for codes in client.acls(principal, timeout_s)}
        return required <= known

    return not required or _wait_until(access, is_there, timeout_s)


def wait_user(access: Access, user: str, timeout_s: float = EFFECT_S) -> bool:
    """Waits until the brokers know a user. Returns False where `timeout_s` passes first."""
    return _wait_until(access, lambda client: client.has_user(user, timeout_s), timeout_s)


def wait_topic(access: Access, topic: str, timeout_s: float = EFFECT_S) -> bool:
    """Waits until the brokers know a topic. Returns False where `timeout_s` passes first."""

    def is_there(client: _core.KafkaClient) -> bool:
        try:
            return bool(partitions_of(client, topic, timeout_s))
        except UnknownPartitionError:
            return False  # not yet

    return _wait_until(access, is_there, timeout_s)


def _wait_until(
    access: Access, is_there: Callable[[_core.KafkaClient], bool], timeout_s: float
) -> bool:
    deadline = time.monotonic() + timeout_s
    try:
        with access.client() as client:
            while not is_there(client):
                if time.monotonic() >= deadline:
                    return False
                time.sleep(LOOK_EVERY_S)
    except KafkaCallError:
        return False
    return True


def _named(codes: tuple[int, str, int, str, str, int, int]) -> AclFields:
    """An ACL with Kafka's names in place of its codes."""
    resource_type, name, pattern, principal, host, operation, permission = codes
    return (
        _name(RESOURCE_TYPES, resource_type),
        name,
        _name(PATTERN_TYPES, pattern),
        principal,
        host,
        _name(OPERATIONS, operation),
        _name(PERMISSIONS, permission),
    )


def _name(names: tuple[str, ...], code: int) -> str:
    return names[code] if 0 <= code < len(names) else "UNKNOWN"
