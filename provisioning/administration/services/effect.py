"""Waits until running brokers apply a change that was written to the metadata store."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from brokers.metadata_records import Acl
from console.base.common.transactions import outside_transaction
from provisioning.cells import BROKERS, broker_access
from provisioning.clusters.services.brokers import is_serving
from provisioning.clusters.services.observation import Condition, observe_cluster
from provisioning.kafka import wait_acls, wait_topic, wait_user
from provisioning.models import Cluster


@dataclass(frozen=True)
class Effect:
    """Whether brokers apply a change, as conditions for the API's answer."""

    conditions: tuple[Condition, ...]


def wait_effect(*, cluster: Cluster, acls: Sequence[Acl] = (), user: str | None = None) -> Effect:
    """Waits, for at most some seconds, until running brokers have the ACLs and the user.

    A cluster that sleeps counts as having them: brokers read them when they start.
    """
    observation = observe_cluster(cluster)
    if not is_serving(observation) or observation.cell is None:
        return _effect("true", "Stored", "Brokers have it as soon as the cluster runs.")
    access = broker_access(cluster.pk, observation.cell)
    fields = [
        (
            acl.resource_type,
            acl.resource_name,
            acl.pattern_type,
            acl.principal,
            acl.host,
            acl.operation,
            acl.permission,
        )
        for acl in acls
    ]
    with outside_transaction(BROKERS):
        effective = wait_acls(access, fields) and (user is None or wait_user(access, user))
    if effective:
        return _effect("true", "Effective", "The brokers have it.")
    return _effect("unknown", "Pending", "The brokers did not confirm it yet.")


def wait_topic_known(*, cluster: Cluster, name: str) -> None:
    """Waits, for at most some seconds, until running brokers know a topic that was restored.

    Waiting for leaders would not do: a restored topic has the leaders that it had before.
    """
    observation = observe_cluster(cluster)
    if is_serving(observation) and observation.cell is not None:
        with outside_transaction(BROKERS):
            wait_topic(broker_access(cluster.pk, observation.cell), name)


def _effect(status: str, reason: str, message: str) -> Effect:
    return Effect((Condition(type="Ready", status=status, reason=reason, message=message),))
