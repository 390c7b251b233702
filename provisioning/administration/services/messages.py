"""Records of a topic, for people. They are read from the brokers and never stored here."""

from __future__ import annotations

from console.base.common.actor import Actor
from console.base.common.audit import record_audit
from console.base.common.errors import NotFound
from provisioning import kafka
from provisioning.cells import cluster_store, kafka_errors, metadata_errors
from provisioning.clusters.services.brokers import require_brokers
from provisioning.errors import KafkaRefused, ProduceSuspended
from provisioning.models import Cluster


def require_open_topic(*, cluster: Cluster, topic: str) -> None:
    """Raises `KafkaRefused` for an internal topic, as brokers do, without waking the cluster."""
    try:
        with metadata_errors():
            internal = cluster_store(cluster.pk).topic(topic).internal
    except NotFound:
        return  # the caller asks the brokers, which answer that there is no such topic
    if internal:
        detail = f"{topic} is internal: its records belong to the service."
        raise KafkaRefused(detail, extra={"kafka_error": "TOPIC_AUTHORIZATION_FAILED"})


def browse_messages(
    *, cluster: Cluster, topic: str, browse: kafka.Browse, wake: bool
) -> kafka.Page:
    """One page of records. Raises `NotFound`, `KafkaRefused`, `ClusterAsleep`, `Unavailable`."""
    require_open_topic(cluster=cluster, topic=topic)
    access = require_brokers(cluster=cluster, wake=wake)
    with kafka_errors():
        return kafka.browse(access, topic, browse)


def produce_message(
    *, actor: Actor, cluster: Cluster, topic: str, record: kafka.NewRecord, wake: bool
) -> kafka.Produced:
    """Produces one record, which is durable when this returns.

    Raises `ProduceSuspended`, `KafkaRefused`, `NotFound`, `ClusterAsleep`, `Unavailable`.
    """
    # Checked here, because brokers accept records of the control plane's own user all the same.
    if cluster.produce_suspended_reason is not None:
        raise ProduceSuspended(cluster.produce_suspended_reason)
    require_open_topic(cluster=cluster, topic=topic)
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
