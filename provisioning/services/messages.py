"""Records of a topic, for people. They are asked for at the brokers; nothing of them is stored."""

from __future__ import annotations

from console.common.actor import Actor
from console.common.audit import record_audit
from provisioning import kafka
from provisioning.cells import kafka_errors
from provisioning.errors import ProduceSuspended
from provisioning.models import Cluster
from provisioning.services.brokers import require_brokers


def browse_messages(
    *, cluster: Cluster, topic: str, wanted: kafka.Browse, wake: bool
) -> kafka.Page:
    """One page. Raises `NotFound`, `ClusterAsleep`, `Unavailable`."""
    access = require_brokers(cluster=cluster, wake=wake)
    with kafka_errors():
        return kafka.browse(access, topic, wanted)


def produce_message(
    *, actor: Actor, cluster: Cluster, topic: str, record: kafka.NewRecord, wake: bool
) -> kafka.Produced:
    """Produces one record; it is durable when this returns.

    Raises `ProduceSuspended`, `KafkaRefused`, `NotFound`, `ClusterAsleep`, `Unavailable`.
    """
    # Brokers take records of the control plane's own user whatever the suspension.
    if cluster.produce_suspended_reason is not None:
        raise ProduceSuspended(cluster.produce_suspended_reason)
    access = require_brokers(cluster=cluster, wake=wake)
    with kafka_errors():
        produced = kafka.produce(access, topic, record)
    record_audit(
        actor=actor,
        action="message.produce",
        target_type="topic",
        target_id=f"{cluster.pk}/{topic}",
        detail={"partition": produced["partition"], "offset": produced["offset"]},
    )
    return produced
