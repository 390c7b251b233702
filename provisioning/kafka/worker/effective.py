"""Whether running brokers know of a change that was made in the metadata store.

They follow it within tens of milliseconds; whoever was told that a thing is there shall find it so.
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
from provisioning.kafka.worker.clients import Access
from provisioning.kafka.worker.errors import kafka_errors
from provisioning.kafka.worker.offsets import partitions_of

LOOK_EVERY_S = 0.02


def wait_acls(access: Access, acls: Iterable[AclFields], timeout_s: float) -> bool:
    """Waits until the brokers have the entries; False where the time is over first."""
    wanted = set(acls)
    principals = sorted({entry[3] for entry in wanted})

    def there(admin: AdminClient) -> bool:
        known = set()
        for principal in principals:
            known |= _acls_of(admin, principal, timeout_s)
        return wanted <= known

    return not wanted or _wait(access, there, timeout_s)


def wait_user(access: Access, user: str, timeout_s: float) -> bool:
    """Waits until the brokers know a user; False where the time is over first."""

    def there(admin: AdminClient) -> bool:
        asked = admin.describe_user_scram_credentials([user], request_timeout=timeout_s)
        try:
            with kafka_errors():
                return bool(asked[user].result().scram_credential_infos)
        except RefusedError:
            return False  # not yet

    return _wait(access, there, timeout_s)


def wait_topic(access: Access, topic: str, timeout_s: float) -> bool:
    """Waits until the brokers know a topic; False where the time is over first."""

    def there(admin: AdminClient) -> bool:
        try:
            return bool(partitions_of(admin, topic, timeout_s))
        except UnknownPartitionError:
            return False  # not yet

    return _wait(access, there, timeout_s)


def _wait(access: Access, there: Callable[[AdminClient], bool], timeout_s: float) -> bool:
    deadline = time.monotonic() + timeout_s
    try:
        with access.admin() as admin:
            while not there(admin):
                if time.monotonic() >= deadline:
                    return False
                time.sleep(LOOK_EVERY_S)
    except KafkaCallError:
        return False
    return True


def _acls_of(admin: AdminClient, principal: str, timeout_s: float) -> set[AclFields]:
    wanted = AclBindingFilter(
        ResourceType.ANY,
        None,
        ResourcePatternType.ANY,
        principal,
        None,
        AclOperation.ANY,
        AclPermissionType.ANY,
    )
    with kafka_errors():
        found = admin.describe_acls(wanted, request_timeout=timeout_s).result()
    return {
        (
            # librdkafka calls the cluster as a resource by its older name.
            "CLUSTER" if entry.restype.name == "BROKER" else entry.restype.name,
            entry.name,
            entry.resource_pattern_type.name,
            entry.principal,
            entry.host,
            entry.operation.name,
            entry.permission_type.name,
        )
        for entry in found
    }
