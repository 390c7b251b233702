"""Records of a topic, for people. They are read from the brokers and never stored here.

Brokers meter them for the API key or member that asks: what is produced, and what is read of the
log for a page or a live tail, whether or not it is shown.
"""

from __future__ import annotations

from contextlib import ExitStack

from console.base.accounts.principals import payer_of
from console.base.common.actor import Actor
from console.base.common.audit import record_audit
from console.base.common.errors import NotFound
from console.base.common.transactions import current_transaction
from console.base.common.turns import Turns
from provisioning import kafka
from provisioning.administration.services.readings import note_reading, read_of_page
from provisioning.cells import cluster_store, kafka_errors, metadata_errors
from provisioning.clusters.services.brokers import require_brokers
from provisioning.errors import FetchSuspended, KafkaRefused, ProduceSuspended
from provisioning.models import Cluster

# A page may read 64 MiB of the log, and its filter computes meanwhile; until its answer is written
# it is in memory several times. So many pages are made at a time by a process, and by it for one
# organization.
READS_MAX, READS_PER_ORGANIZATION = 8, 2
_reads = Turns(
    READS_MAX,
    "Too many pages of records are read at this moment.",
    places_per_key=READS_PER_ORGANIZATION,
)


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


def require_fetch(*, cluster: Cluster) -> None:
    """Raises `FetchSuspended` while the cluster gives out no records.

    Brokers refuse them as well, once they know, and in Kafka's words.
    """
    limit = cluster.traffic_limit
    if limit is not None and limit.refuses_fetch:
        raise FetchSuspended(limit.reason)


def access_for(*, actor: Actor, cluster: Cluster, topic: str, wake: bool) -> kafka.Access:
    """Access to a topic's brokers for reading and writing records that the actor pays for.

    Raises `KafkaRefused`, and as `require_brokers` does.
    """
    require_open_topic(cluster=cluster, topic=topic)
    return require_brokers(cluster=cluster, wake=wake).paid_by(payer_of(actor))


def browse_messages(
    *, actor: Actor, cluster: Cluster, topic: str, browse: kafka.Browse, wake: bool
) -> kafka.Page:
    """One page of records, which is audited.

    Raises `FetchSuspended`, `NotFound`, `KafkaRefused`, `QuotaUsedUp`, `ClusterAsleep`,
    `Unavailable`.
    """
    require_fetch(cluster=cluster)
    access = access_for(actor=actor, cluster=cluster, topic=topic, wake=wake)
    with kafka_errors(), ExitStack() as place:
        place.enter_context(_reads.turn(cluster.organization_id))
        page = kafka.browse(access, topic, browse)
        asker = current_transaction()
        if asker is not None and asker.turn is not None:
            asker.turn.keep(place.pop_all().close)
    note_reading(actor=actor, cluster=cluster, topic=topic, read=read_of_page(page))
    return page


def produce_message(
    *, actor: Actor, cluster: Cluster, topic: str, record: kafka.NewRecord, wake: bool
) -> kafka.Produced:
    """Produces one record, which is durable when this returns.

    Raises `ProduceSuspended`, `KafkaRefused`, `QuotaUsedUp`, `NotFound`, `ClusterAsleep`,
    `Unavailable`.
    """
    # As in `require_fetch`.
    limit = cluster.traffic_limit
    if limit is not None and limit.refuses_produce:
        raise ProduceSuspended(limit.reason)
    access = access_for(actor=actor, cluster=cluster, topic=topic, wake=wake)
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
