"""Reads the figures that alerts watch, for every organization, in the system's tenancy scope.

Nothing here asks a broker, so a sleeping cluster is not woken: its groups keep the lag that they
had.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Q, Sum

from brokers.metadata_records import ClusterStatus
from console.alerts.choices import OF_GROUPS, OF_STORAGE, AlertKind
from console.alerts.models import Alert
from console.alerts.rules import Reading, leading_topic, worst_group
from metering.choices import UsageMeter
from metering.models import ClusterCoverage, ProvisionalMinute
from metering.periods import MINUTE_MS, from_ms, to_ms
from metering.services.usage import topic_names
from provisioning.cell.samples import sampled_groups
from provisioning.clusters.services.observation import read_status
from provisioning.clusters.services.samples import newest_sample

logger = logging.getLogger(__name__)

# Where storage was last metered longer ago than this, its size counts as not known.
STORAGE_STALE = timedelta(hours=1)
GROWTH = timedelta(hours=24)


def read_figures(alerts: Collection[Alert], at: datetime) -> dict[str, Reading]:
    """Returns the figure of each alert by the alert's id; a figure that is not known is left out.

    It takes at most one read of the cell and one query for each cluster, and four queries beside.
    """
    stored = _read_storage({alert.cluster_id for alert in alerts if alert.kind in OF_STORAGE}, at)
    figures: dict[str, Reading] = {}
    for cluster_id, of_cluster in _group_by_cluster(alerts).items():
        try:
            figures |= _read_cluster(cluster_id, of_cluster, stored.get(cluster_id), at)
        except Exception:
            # A record of one cluster that cannot be read must not stop the alerts of others.
            logger.exception("alerts.failed", extra={"cluster": cluster_id})
    return figures


def _read_cluster(
    cluster_id: str, alerts: Sequence[Alert], stored: Mapping[str, Reading] | None, at: datetime
) -> dict[str, Reading]:
    kinds = {alert.kind for alert in alerts}
    wants_groups, wants_connections = kinds & OF_GROUPS, AlertKind.CONNECTIONS.value in kinds
    read = read_status(cluster_id) if wants_groups or wants_connections else None
    known, status = (False, None) if read is None else read
    owner = alerts[0].organization_id
    # Where the status is not known, it is not known how long records have waited either.
    groups = _sampled_groups(owner, cluster_id, status, at) if wants_groups and known else None
    connections = status.connections if wants_connections and status is not None else None
    readings = {alert.pk: _reading_of(alert, groups, connections, stored) for alert in alerts}
    return {pk: reading for pk, reading in readings.items() if reading is not None}


def _group_by_cluster(alerts: Iterable[Alert]) -> dict[str, list[Alert]]:
    clusters: dict[str, list[Alert]] = {}
    for alert in alerts:
        clusters.setdefault(alert.cluster_id, []).append(alert)
    return clusters


def _reading_of(
    alert: Alert,
    groups: Sequence[Mapping[str, Any]] | None,
    connections: int | None,
    stored: Mapping[str, Reading] | None,
) -> Reading | None:
    if alert.kind in OF_GROUPS:
        figure = "lag" if alert.kind == AlertKind.GROUP_LAG.value else "lag_seconds"
        if groups is None:
            return None
        return worst_group(groups, figure=figure, group_name=alert.group)
    if alert.kind == AlertKind.CONNECTIONS.value:
        return None if connections is None else Reading(connections)
    return None if stored is None else stored[alert.kind]


def _sampled_groups(
    organization_id: str, cluster_id: str, status: ClusterStatus | None, at: datetime
) -> Sequence[Mapping[str, Any]] | None:
    sample = newest_sample(organization_id=organization_id, cluster_id=cluster_id)
    return None if sample is None else sampled_groups(sample, status, to_ms(at))


def _read_storage(clusters: set[str], at: datetime) -> dict[str, dict[str, Reading]]:
    """Returns for each cluster its figures of storage by kind, each with the topic that leads.

    They are those of the last metered minute. A cluster whose storage was not metered lately
    (`STORAGE_STALE`) is left out.
    """
    known: dict[str, datetime] = {}
    for row in ClusterCoverage.objects.filter(pk__in=clusters):
        until_ms = max((span.upper or 0 for span in row.storage_ms), default=0)
        if until_ms >= to_ms(at - STORAGE_STALE):
            known[row.pk] = from_ms(until_ms - MINUTE_MS)
    stored = _bytes_by_topic(known)
    leading = {place: leading_topic(by_topic) for place, by_topic in stored.items()}
    names = topic_names((cluster_id, topic_id) for (cluster_id, _), topic_id in leading.items())
    figures: dict[str, dict[str, Reading]] = {cluster_id: {} for cluster_id in known}
    for (cluster_id, kind), by_topic in stored.items():
        topic_id = leading[cluster_id, kind]
        subject = names.get((cluster_id, topic_id), topic_id)
        figures[cluster_id][kind] = Reading(max(by_topic.total(), 0), subject)
    return figures


def _bytes_by_topic(minutes: Mapping[str, datetime]) -> dict[tuple[str, str], Counter[str]]:
    """Returns the bytes of each topic by cluster and kind: those stored, and their growth.

    `minutes`: the clusters, each with the minute that counts.
    """
    stored: dict[tuple[str, str], Counter[str]] = {
        (cluster_id, kind): Counter() for cluster_id in minutes for kind in OF_STORAGE
    }
    if not minutes:
        return stored
    matching = Q()
    for cluster_id, minute in minutes.items():
        matching |= Q(cluster_id=cluster_id, minute__in=[minute, minute - GROWTH])
    rows = ProvisionalMinute.objects.filter(matching, meter=UsageMeter.STORAGE_BYTE_MINUTES.value)
    sums = rows.values_list("cluster_id", "minute", "topic_id").annotate(bytes=Sum("quantity"))
    # Where a metered minute has no row, nothing was stored in it.
    for cluster_id, minute, topic_id, total in sums:
        latest = minute == minutes[cluster_id]
        growth = stored[cluster_id, AlertKind.STORAGE_GROWTH_BYTES.value]
        growth[topic_id] += int(total) if latest else -int(total)
        if latest:
            stored[cluster_id, AlertKind.STORAGE_BYTES.value][topic_id] += int(total)
    return stored
