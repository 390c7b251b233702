"""Metrics of an organization's clusters, for its own Prometheus, as OpenMetrics text.

They come from the cell's metadata store and the keeper's samples alone, so a scrape neither wakes a
cluster nor asks its brokers: connections and damaged batches as the keeper wrote them, counters of
topics and groups from its last sample.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.openmetrics.exposition import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.registry import Collector

from brokers.errors import MetadataError
from brokers.metadata_records import ClusterStatus, Topic
from console.base.common.clock import now, unix_ms
from provisioning.cell.sample_files import TakenSample
from provisioning.cell.samples import sampled_groups
from provisioning.cells import cell_store, cluster_store
from provisioning.clusters.services.damage import ReportedDamage, reported_by_cluster
from provisioning.clusters.services.samples import newest_sample
from provisioning.models import Cluster

logger = logging.getLogger(__name__)

CONTENT_TYPE = CONTENT_TYPE_LATEST
CLUSTER = ("cluster_id", "cluster")
TOPIC = (*CLUSTER, "topic")
PARTITION = (*TOPIC, "partition")
GROUP = (*CLUSTER, "group")
# (metric, help), in the order in which a sample lists a topic's counters.
COUNTERS = (
    ("freshet_topic_received_bytes", "Bytes of record batches that brokers took."),
    ("freshet_topic_sent_bytes", "Bytes of record batches that brokers handed out."),
    ("freshet_topic_received_records", "Records that brokers took."),
)


@dataclass(frozen=True)
class ClusterFacts:
    """What is known of one cluster. `reachable`: whether the cell's metadata store answered."""

    cluster: Cluster
    reachable: bool
    status: ClusterStatus | None = None
    sample: TakenSample | None = None
    topics: Sequence[Topic] = field(default=())
    damaged: Sequence[ReportedDamage] = field(default=())


def metrics_text(clusters: Iterable[Cluster]) -> bytes:
    """The metrics of clusters. A cluster whose cell does not answer has `up` 0 and no counts."""
    registry = CollectorRegistry(auto_describe=False)
    damaged = reported_by_cluster()
    registry.register(
        _Clusters([read_facts(cluster, damaged.get(cluster.pk, ())) for cluster in clusters])
    )
    text: bytes = generate_latest(registry)  # type: ignore[no-untyped-call]
    return text


def read_facts(cluster: Cluster, damaged: Sequence[ReportedDamage] = ()) -> ClusterFacts:
    """Reads a cluster's sample; and its status and topics from the cell's metadata store."""
    cell = cell_store()
    sample = newest_sample(organization_id=cluster.organization_id, cluster_id=cluster.pk)
    try:
        return ClusterFacts(
            cluster=cluster,
            reachable=True,
            status=cell.status(cluster.pk),
            sample=sample,
            topics=[topic for topic in _topics(cluster) if not topic.internal],
            damaged=damaged,
        )
    except MetadataError as error:
        logger.warning("metrics.unknown", extra={"cluster": cluster.pk, "error": str(error)})
        return ClusterFacts(cluster=cluster, reachable=False)


def _topics(cluster: Cluster) -> Sequence[Topic]:
    # The metadata store does not know a cluster yet that no worker has reconciled.
    return cluster_store(cluster.pk).topics() if cluster.reconciled_generation else ()


class _Clusters(Collector):
    """Builds the metric families from the facts of all clusters."""

    def __init__(self, clusters: Sequence[ClusterFacts]) -> None:
        self._facts = clusters

    def collect(self) -> Iterator[Metric]:
        """Yields all families, each with the values of every cluster."""
        yield from self._clusters()
        yield from self._topics()
        yield from self._groups()

    def _clusters(self) -> Iterator[Metric]:
        up = GaugeMetricFamily(
            "freshet_cluster_up", "1 where brokers serve, 0 where it sleeps.", labels=CLUSTER
        )
        brokers = GaugeMetricFamily("freshet_cluster_brokers", "Brokers.", labels=CLUSTER)
        connections = GaugeMetricFamily(
            "freshet_cluster_connections", "Connections of clients.", labels=CLUSTER
        )
        sampled = GaugeMetricFamily(
            "freshet_cluster_sampled_timestamp_seconds",
            "When topics and groups were looked at last.",
            labels=CLUSTER,
            unit="seconds",
        )
        for facts in self._facts:
            labels, status = _labels(facts), facts.status
            running = status is not None and status.phase == "running"
            up.add_metric(labels, float(running))
            if facts.reachable:
                brokers.add_metric(labels, len(status.brokers) if status else 0)
                connections.add_metric(labels, status.connections if status else 0)
            if facts.sample is not None:
                sampled.add_metric(labels, facts.sample.taken_at_ms / 1000)
        yield from (up, brokers, connections, sampled)

    def _topics(self) -> Iterator[Metric]:
        partitions = GaugeMetricFamily("freshet_topic_partitions", "Partitions.", labels=TOPIC)
        counters = [CounterMetricFamily(name, text, labels=TOPIC) for name, text in COUNTERS]
        for facts in self._facts:
            counted = _content(facts, "topics", {})
            for topic in sorted(facts.topics, key=lambda topic: topic.name):
                labels = [*_labels(facts), topic.name]
                partitions.add_metric(labels, topic.partitions)
                # They start at 0 with the topic's broker; Prometheus handles counters that reset.
                for family, count in zip(counters, counted.get(topic.name, ()), strict=False):
                    family.add_metric(labels, count)
        yield from (partitions, *counters, self._damaged())

    def _damaged(self) -> Metric:
        damaged = GaugeMetricFamily(
            "freshet_topic_damaged_first_offset",
            "Where the lowest damaged batch of a partition begins.",
            labels=PARTITION,
        )
        for facts in self._facts:
            ids = {topic.name: topic.id for topic in facts.topics}
            for batch in facts.damaged:
                # Not of a topic that had the name before.
                if batch.topic in ids and batch.is_of(batch.topic, ids[batch.topic]):
                    labels = [*_labels(facts), batch.topic, str(batch.partition)]
                    damaged.add_metric(labels, batch.first_offset)
        return damaged

    def _groups(self) -> Iterator[Metric]:
        members = GaugeMetricFamily(
            "freshet_group_members", "Members of a consumer group.", labels=GROUP
        )
        lag = GaugeMetricFamily(
            "freshet_group_lag_records",
            "Records of a topic that a group has not committed.",
            labels=(*GROUP, "topic"),
        )
        seconds = GaugeMetricFamily(
            "freshet_group_lag_seconds",
            "Age of the oldest record of a topic that a group has not committed.",
            labels=(*GROUP, "topic"),
            unit="seconds",
        )
        for facts in self._facts:
            for group in sampled_groups(facts.sample, facts.status, unix_ms(now())):
                labels = [*_labels(facts), group["group"]]
                members.add_metric(labels, len(group["members"]))
                for topic, records, age in lag_by_topic(group["partitions"]):
                    if records is not None:
                        lag.add_metric([*labels, topic], records)
                    if age is not None:
                        seconds.add_metric([*labels, topic], age)
        yield from (members, lag, seconds)


def lag_by_topic(
    partitions: Iterable[Mapping[str, Any]],
) -> list[tuple[str, int | None, float | None]]:
    """(topic, records, seconds) by topic: the sum of lags and the greatest age. Pure.

    A number is None where it is known of no partition of the topic.
    """
    records: dict[str, list[int]] = {}
    ages: dict[str, list[float]] = {}
    topics = set()
    for partition in partitions:
        topics.add(partition["topic"])
        if partition["lag"] is not None:
            records.setdefault(partition["topic"], []).append(partition["lag"])
        if partition["lag_seconds"] is not None:
            ages.setdefault(partition["topic"], []).append(partition["lag_seconds"])
    return [
        (
            topic,
            sum(records[topic]) if topic in records else None,
            max(ages[topic]) if topic in ages else None,
        )
        for topic in sorted(topics)
    ]


def _labels(facts: ClusterFacts) -> list[str]:
    return [facts.cluster.pk, facts.cluster.name]


def _content(facts: ClusterFacts, name: str, default: Any) -> Any:  # noqa: ANN401 (JSON)
    return default if facts.sample is None else facts.sample.content.get(name, default)
