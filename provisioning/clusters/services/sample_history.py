"""Keeps what samples leave behind in bounds: hours from minutes, parts of tables, and old files."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from django.db import connection
from django.db.models import Max, Min

from brokers.objects import Objects
from console.base.common.clock import now, unix_ms
from console.base.common.tenancy import system_scope
from provisioning.cell.sample_files import HOUR_MS, PREFIX, hour_prefix, parse_key
from provisioning.clusters.services.sample_ingest import KEPT, samples_store
from provisioning.clusters.services.sample_series import hourly_series
from provisioning.models import SampleFile, SampleHour, SampleMinute

HOUR = timedelta(hours=1)
# An hour is added up once a file was taken in that was written so long after its end.
SETTLING = timedelta(minutes=2)
CLUSTERS_A_TRANSACTION = 50
# The most hours of a pass; the next pass goes on.
HOURS_A_PASS = 6


def keep_samples() -> None:
    """Adds up hours that have ended, makes and drops parts of tables, and removes old files.

    It may be interrupted anywhere and repeated. Raises `OSError` where the object store cannot be
    reached.
    """
    keep_parts()
    add_up_hours()
    remove_old_files(samples_store())


def keep_parts() -> int:
    """Makes the parts of tables for the next days, and drops those that are too old.

    Returns how many.
    """
    with connection.cursor() as cursor:
        cursor.execute("SELECT provisioning_keep_sample_parts(%s)", [now().astimezone(UTC).date()])
        row = cursor.fetchone()
    return int(row[0]) if row else 0


def add_up_hours() -> int:
    """Writes rows of the hours that have ended and have none. Returns how many hours."""
    with system_scope():
        newest_ms = SampleFile.objects.aggregate(newest=Max("emitted_at_ms"))["newest"]
        last = SampleHour.objects.aggregate(last=Max("at"))["last"]
        minutes = SampleMinute.objects.all()
        if last is not None:
            minutes = minutes.filter(at__gte=last + HOUR)
        first = minutes.aggregate(first=Min("at"))["first"]
    if newest_ms is None or first is None:
        return 0
    settled = datetime.fromtimestamp(newest_ms / 1000, UTC) - SETTLING
    hour, count = first.replace(minute=0, second=0, microsecond=0), 0
    while hour + HOUR <= settled and count < HOURS_A_PASS:
        _add_up_hour(hour)
        hour, count = hour + HOUR, count + 1
    return count


def remove_old_files(objects: Objects) -> int:
    """Removes files that are older than `KEPT`, by the hour, and forgets them. Returns how many."""
    # The hour that this moment divides stays until all of it is old.
    before_ms = unix_ms(now() - KEPT)
    before_ms -= before_ms % HOUR_MS
    hours = set()
    for key in objects.list(PREFIX):
        parsed = parse_key(key)
        if parsed is None:
            continue
        if parsed.emitted_at_ms >= before_ms:
            break
        hours.add(hour_prefix(parsed.emitted_at_ms))
    removed = sum(objects.remove(hour) for hour in sorted(hours))
    SampleFile.objects.filter(emitted_at_ms__lt=before_ms).delete()
    return removed


def _add_up_hour(hour: datetime) -> None:
    with system_scope():
        minutes = SampleMinute.objects.filter(at__gte=hour, at__lt=hour + HOUR)
        owners = dict(minutes.values_list("cluster_id", "organization_id").distinct())
    names = sorted(owners)
    for start in range(0, len(names), CLUSTERS_A_TRANSACTION):
        with system_scope():
            SampleHour.objects.bulk_create(
                (
                    SampleHour(
                        organization_id=owners[cluster_id],
                        cluster_id=cluster_id,
                        at=hour,
                        series=hourly_series(
                            minutes.filter(cluster_id=cluster_id)
                            .order_by("at")
                            .values_list("series", flat=True)
                        ),
                    )
                    for cluster_id in names[start : start + CLUSTERS_A_TRANSACTION]
                ),
                ignore_conflicts=True,
            )
