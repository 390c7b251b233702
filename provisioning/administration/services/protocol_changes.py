"""Copies changes that clients made over the Kafka protocol into the audit log.

Brokers write such a change into the cluster's metadata, in the transaction of the change itself.
Here it is copied, and then removed there: brokers drop none before, and refuse further ones where
too many wait. What is missing all the same (a broker of a release that dropped the oldest, or
metadata from a backup) shows by its number, and has an entry of its own.

The id of an audit entry is a digest of the change, so a change that is read again (a worker died
between the two, or the cell was restored from a backup) gives the same entry: the log has each
change once.
"""

from __future__ import annotations

import base64
import hashlib
import itertools
import logging
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from brokers.errors import MetadataError
from brokers.metadata_records import ProtocolChange
from console.base.common.actor import ActorKind, system_actor
from console.base.common.audit import bounded_detail
from console.base.common.ids import RANDOM_CHARS
from console.base.common.models import AuditEntry
from console.base.common.models.audit import ACTION_CHARS_MAX, ACTOR_CHARS_MAX, TARGET_CHARS_MAX
from console.base.common.tenancy import organization_scope
from console.base.common.transactions import commit_so_far, task_transaction
from console.base.runtime.texts import storable_short
from provisioning.cells import cluster_store
from provisioning.clusters.services.operations import enqueue_reconcile
from provisioning.models import Cluster, Credential

logger = logging.getLogger(__name__)

PAGE_CHANGES = 500
# A cluster whose clients never stop changing things must not keep the sweep from other clusters.
PAGES_MAX = 20
MICROSECOND = timedelta(microseconds=1)
NO_REQUEST = "-"
REQUEST_CHARS_MAX = 64
ADDRESS_CHARS_MAX = 64
# The action of an entry that says that changes are missing.
MISSING = "cluster.changes_missing"
# How Kafka begins the name of a principal that is a user.
USER = "User:"


def ingest_protocol_changes(*, organization_id: str, cluster_id: str) -> int:
    """Copies the changes of a cluster's clients into the audit log; returns how many were read.

    A cell that does not answer raises nothing: the next sweep reads them. Several workers may do it
    at a time.
    """
    store, read, users_changed = cluster_store(cluster_id), 0, False
    with task_transaction(), organization_scope(organization_id):
        try:
            for _ in range(PAGES_MAX):
                page = store.changes(after=0, limit=PAGE_CHANGES)
                is_last = len(page) < PAGE_CHANGES
                if not page:
                    break
                changes = page if is_last else _without_last_moment(page)
                _record(organization_id, cluster_id, changes)
                # Only after the commit may the cell forget them.
                commit_so_far()
                store.forget_changes(changes[-1].sequence)
                users_changed |= any(change.target_type == "user" for change in changes)
                read += len(changes)
                if is_last:
                    break
        except MetadataError as error:
            logger.warning("changes.later", extra={"cluster": cluster_id, "error": str(error)})
        if users_changed:
            # A reconcile gives users that clients made their rows.
            enqueue_reconcile(cluster=Cluster.objects.get(pk=cluster_id))
    return read


def _without_last_moment(page: list[ProtocolChange]) -> list[ProtocolChange]:
    """A page without the changes of its last millisecond, of which the next page may have more.

    So all changes of a millisecond are seen together, and their entries can have their order.
    """
    before = [change for change in page if change.at_ms != page[-1].at_ms]
    return before or page


def _record(organization_id: str, cluster_id: str, changes: Sequence[ProtocolChange]) -> None:
    """Writes the entries of changes, and of what is missing among them."""
    numbers = Cluster.objects.values_list("changes_recorded", flat=True)
    recorded = numbers.select_for_update(no_key=True).get(pk=cluster_id)
    entries = [
        entry_of(organization_id, cluster_id, change, place)
        for _, of_moment in itertools.groupby(changes, lambda change: change.at_ms)
        for place, change in enumerate(of_moment)
    ]
    known = AuditEntry.objects.filter(pk__in=[entry.pk for entry in entries])
    gaps, last = find_gaps(recorded, changes, entries, set(known.values_list("pk", flat=True)))
    missing = [missing_entry(organization_id, cluster_id, gap) for gap in gaps]
    AuditEntry.objects.bulk_create([*missing, *entries], ignore_conflicts=True)
    for gap in gaps:
        logger.error(
            "changes.missing",
            extra={"cluster": cluster_id, "after": gap.after, "next": gap.next.sequence},
        )
    if last != recorded:
        Cluster.objects.filter(pk=cluster_id).update(changes_recorded=last)


@dataclass(frozen=True, slots=True)
class Gap:
    """A place where changes are missing, or may be."""

    after: int
    """The number of the last change before it that is in the log."""
    next: ProtocolChange
    """The first change behind it."""

    @property
    def missing(self) -> int | None:
        """How many changes are missing; None where the cell counts anew and nobody knows."""
        missing = self.next.sequence - self.after - 1
        return missing if missing > 0 else None


def find_gaps(
    recorded: int | None,
    changes: Sequence[ProtocolChange],
    entries: Sequence[AuditEntry],
    known: Collection[str],
) -> tuple[list[Gap], int | None]:
    """Where changes are missing among those that were read, and the number of the last one. Pure.

    `recorded` is the number of the last change in the log, None where that is not known; `known`
    has the ids of those entries that are there already. A number that is known with another change
    was given anew: the cell's metadata came back from a backup.
    """
    gaps, last = [], recorded
    for change, entry in zip(changes, entries, strict=True):
        if entry.pk in known and (last is None or change.sequence <= last):
            continue
        if last is not None and change.sequence != last + 1:
            gaps.append(Gap(last, change))
        last = change.sequence
    return gaps, last


def missing_entry(organization_id: str, cluster_id: str, gap: Gap) -> AuditEntry:
    """The entry that says that changes are missing before this one. Pure: one gap has one entry."""
    return AuditEntry(
        id=_id_of(cluster_id, gap.next, MISSING),
        organization_id=organization_id,
        created_at=datetime.fromtimestamp(gap.next.at_ms / 1000, UTC),
        action=MISSING,
        actor_kind=ActorKind.SYSTEM,
        actor_id=system_actor(organization_id).id,
        target_type="cluster",
        target_id=cluster_id,
        request_id=NO_REQUEST,
        detail={
            "after": str(gap.after),
            "next": str(gap.next.sequence),
            "missing": None if gap.missing is None else str(gap.missing),
            "cluster_id": cluster_id,
        },
    )


def entry_of(
    organization_id: str, cluster_id: str, change: ProtocolChange, place: int = 0
) -> AuditEntry:
    """The audit entry of a change. Pure: the same change gives the same entry with the same id.

    `place` is how many changes come before it in its millisecond; entries are sorted by their time.
    """
    target = change.target
    if change.target_type == "cluster":
        target = cluster_id
    elif not target.startswith(f"{cluster_id}/"):
        target = f"{cluster_id}/{target}"
    detail = {
        **change.detail,
        "change": str(change.sequence),
        "client_id": change.client_id,
        "cluster_id": cluster_id,
    }
    return AuditEntry(
        id=_id_of(cluster_id, change),
        organization_id=organization_id,
        created_at=datetime.fromtimestamp(change.at_ms / 1000, UTC) + place * MICROSECOND,
        action=change.action[:ACTION_CHARS_MAX],
        actor_kind=ActorKind.KAFKA,
        actor_id=storable_short(change.principal, ACTOR_CHARS_MAX),
        target_type=change.target_type,
        target_id=storable_short(target, TARGET_CHARS_MAX),
        request_id=storable_short(change.connection, REQUEST_CHARS_MAX) or NO_REQUEST,
        address=change.address[:ADDRESS_CHARS_MAX],
        detail=bounded_detail(detail),
    )


def names_of_principals(principals: Collection[str]) -> Mapping[str, str]:
    """Principal → name of the credential behind it. Reads in the caller's tenancy scope."""
    ids = {principal.removeprefix(USER): principal for principal in principals}
    credentials = Credential.objects.filter(pk__in=ids).values_list("pk", "name")
    return {ids[pk]: name for pk, name in credentials}


def _id_of(cluster_id: str, change: ProtocolChange, *more: str) -> str:
    """The id of a change's audit entry, in the form of every id; with `more`, of another entry.

    It is a digest of more than the sequence number, because after a restore of the cell's metadata
    another change may have the same number.
    """
    parts: Sequence[object] = (
        *(cluster_id, change.sequence, change.at_ms, change.principal),
        *(change.action, change.target_type, change.target, *more),
    )
    digest = hashlib.sha256("\0".join(map(str, parts)).encode()).digest()
    return f"aud_{base64.b32encode(digest).decode().lower()[:RANDOM_CHARS]}"
