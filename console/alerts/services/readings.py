"""Reads the figures that alerts are about: of every organisation, in the system's tenancy scope.

Nothing here asks a broker: a sleeping cluster goes on sleeping, with the lag that it had.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Q, Sum

from brokers.errors import MetadataError
from console.alerts.choices import OF_GROUPS, OF_STORAGE, AlertKind
from console.alerts.models import Alert
from console.alerts.rules import Reading, worst_group
from metering.choices import Meter
from metering.models import ClusterCoverage, ProvisionalMinute
from metering.periods import MINUTE_MS, from_ms, to_ms
from provisioning.cells import cell_store

logger = logging.getLogger(__name__)

# Storage that is metered no further than so long ago is not known.
STORAGE_STALE = timedelta(hours=1)
GROWTH = timedelta(hours=24)


def read_figures(alerts: Collection[Alert], at: datetime) -> dict[str, Reading]:
    """By alert's id; one whose figure is not known is left out.

    Two reads of the cell a cluster at most, and three queries.
    """
    stored = _stored({alert.cluster_id for alert in alerts if alert.kind in OF_STORAGE}, at)
    found: dict[str, Reading] = {}
    for cluster_id, some in _by_cluster(alerts).items():
        try:
            found |= _of_cluster(cluster_id, some, stored.get(cluster_id))
        except Exception:
            # What one cell record says must not keep other clusters' alerts from being judged.
            logger.exception("alerts.failed", extra={"cluster": cluster_id})
    return found


def _of_cluster(
    cluster_id: str, alerts: Sequence[Alert], stored: tuple[int, int] | None
) -> dict[str, Reading]:
    kinds = {alert.kind for alert in alerts}
    groups = _groups(cluster_id) if kinds & OF_GROUPS else None
    connections = _connections(cluster_id) if AlertKind.CONNECTIONS.value in kinds else None
    readings = {alert.pk: _figure(alert, groups, connections, stored) for alert in alerts}
    return {pk: reading for pk, reading in readings.items() if reading is not None}


def _by_cluster(alerts: Iterable[Alert]) -> dict[str, list[Alert]]:
    clusters: dict[str, list[Alert]] = {}
    for alert in alerts:
        clusters.setdefault(alert.cluster_id, []).append(alert)
    return clusters


def _figure(
    alert: Alert,
    groups: list[Mapping[str, Any]] | None,
    connections: int | None,
    stored: tuple[int, int] | None,
) -> Reading | None:
    if alert.kind in OF_GROUPS:
        figure = "lag" if alert.kind == AlertKind.GROUP_LAG.value else "lag_seconds"
        if groups is None:
            return None
        return worst_group(groups, figure=figure, wanted=alert.group)
    if alert.kind == AlertKind.CONNECTIONS.value:
        return None if connections is None else Reading(connections)
    if stored is None:
        return None
    now_bytes, before_bytes = stored
    grows = alert.kind == AlertKind.STORAGE_GROWTH_BYTES.value
    return Reading(max(now_bytes - before_bytes, 0) if grows else now_bytes)


def _groups(cluster_id: str) -> list[Mapping[str, Any]] | None:
    try:
        sample = cell_store().sample(cluster_id)
    except MetadataError as error:
        logger.warning("alerts.unknown cluster=%s error=%s", cluster_id, error)
        return None
    return None if sample is None else list(sample.content.get("groups", []))


def _connections(cluster_id: str) -> int | None:
    try:
        status = cell_store().status(cluster_id)
    except MetadataError as error:
        logger.warning("alerts.unknown cluster=%s error=%s", cluster_id, error)
        return None
    return None if status is None else status.connections


def _stored(clusters: set[str], at: datetime) -> dict[str, tuple[int, int]]:
    """Bytes that clusters stored in the last minute that is metered, and a day before it."""
    known: dict[str, datetime] = {}
    for row in ClusterCoverage.objects.filter(pk__in=clusters):
        until_ms = max((span.upper or 0 for span in row.storage_ms), default=0)
        if until_ms >= to_ms(at - STORAGE_STALE):
            known[row.pk] = from_ms(until_ms - MINUTE_MS)
    if not known:
        return {}
    wanted = Q()
    for cluster_id, minute in known.items():
        wanted |= Q(cluster_id=cluster_id, minute__in=[minute, minute - GROWTH])
    rows = ProvisionalMinute.objects.filter(wanted, meter=Meter.STORAGE_BYTE_MINUTES.value)
    sums = rows.values_list("cluster_id", "minute").annotate(bytes=Sum("quantity"))
    # A minute that is known and has no row has nothing stored.
    stored = {(cluster_id, minute): int(total) for cluster_id, minute, total in sums}
    return {
        cluster_id: (
            stored.get((cluster_id, minute), 0),
            stored.get((cluster_id, minute - GROWTH), 0),
        )
        for cluster_id, minute in known.items()
    }
