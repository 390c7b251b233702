"""Waits until running brokers know of a change in the metadata store.

Brokers follow the store within tens of milliseconds. A request waits for that, so that whatever it
reports as created can be used at once.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable

from confluent_kafka.admin import (
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)

from provisioning.kafka.errors import (
    KafkaCallError,
    RefusedError,
    UnknownPartitionError,
)
from provisioning.kafka.shapes import AclFields
from provisioning.kafka.worker.clients import KafkaClients
from provisioning.kafka.worker.errors import kafka_errors
from provisioning.kafka.worker.offsets import partitions_of

LOOK_EVERY_S = 0.02


def wait_acls(access: KafkaClients, acls: Iterable[AclFields], timeout_s: float) -> bool:
    """Waits until the brokers have these ACLs. Returns False where `timeout_s` passes first."""
    required = set(acls)
    principals = sorted({entry[3] for entry in required})

    def is_there(admin: AdminClient) -> bool:
        known = set()
        for principal in principals:
            known |= _acls_of(admin, principal, timeout_s)
        return required <= known

    return not required or _wait_until(access, is_there, timeout_s)


def wait_user(access: KafkaClients, user: str, timeout_s: float) -> bool:
    """Waits until the brokers know a user. Returns False where `timeout_s` passes first."""

    def is_there(admin: AdminClient) -> bool:
        futures = admin.describe_user_scram_credentials([user], request_timeout=timeout_s)
        try:
            with kafka_errors():
                return bool(futures[user].result().scram_credential_infos)
        except RefusedError:
            return False  # not yet

    return _wait_until(access, is_there, timeout_s)


def wait_topic(access: KafkaClients, topic: str, timeout_s: float) -> bool:
    """Waits until the brokers know a topic. Returns False where `timeout_s` passes first."""

    def is_there(admin: AdminClient) -> bool:
        try:
            return bool(partitions_of(admin, topic, timeout_s))
        except UnknownPartitionError:
            return False  # not yet

    return _wait_until(access, is_there, timeout_s)


def _wait_until(
    access: KafkaClients, is_there: Callable[[AdminClient], bool], timeout_s: float
) -> bool:
    deadline = time.monotonic() + timeout_s
    try:
        with access.admin() as admin:
            while not is_there(admin):
                if time.monotonic() >= deadline:
                    return False
                time.sleep(LOOK_EVERY_S)
    except KafkaCallError:
        return False
    return True


def _acls_of(admin: AdminClient, principal: str, timeout_s: float) -> set[AclFields]:
    binding_filter = AclBindingFilter(
        ResourceType.ANY,
        None,
        ResourcePatternType.ANY,
        principal,
        None,
        AclOperation.ANY,
        AclPermissionType.ANY,
    )
    with kafka_errors():
        bindings = admin.describe_acls(binding_filter, request_timeout=timeout_s).result()
    return {
        (
            # librdkafka uses an older name for the resource type of the cluster.
            "CLUSTER" if entry.restype.name == "BROKER" else entry.restype.name,
            entry.name,
            entry.resource_pattern_type.name,
            entry.principal,
            entry.host,
            entry.operation.name,
            entry.permission_type.name,
        )
        for entry in bindings
    }
