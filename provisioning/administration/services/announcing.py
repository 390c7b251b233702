"""Deletions that leave nothing to find: announced first, so that the audit log tells of each.

The change is the cell's, the entry PostgreSQL's. A request that dies between the two would leave a
change that nobody is told of, and the same request sent again finds nothing to delete. So the entry
is written down before, in a transaction beside the request's, and taken into the log with the
request's own commit. What dead requests left the sweep goes on with: what was done is told.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta

from brokers.errors import MetadataError
from console.base.common import locks
from console.base.common.actor import Actor
from console.base.common.audit import new_entry
from console.base.common.beside import committed_beside
from console.base.common.clock import now
from console.base.common.errors import AppError, UserError
from console.base.common.models import AuditEntry
from console.base.common.tenancy import organization_scope, system_scope
from provisioning.models import Announcement, Cluster

logger = logging.getLogger(__name__)

# The entry's fields that an announcement keeps under their names.
KEPT = ("action", "actor_kind", "actor_id", "target_type", "target_id", "request_id", "address")
# The kind of the lock that a request holds on its announcement.
LOCK = "announcement"
# A call that hung has arrived by then, or never does.
ARRIVED_AFTER = timedelta(minutes=2)
# What nobody could find out by then is told as such: a log that says too much does no harm.
UNKNOWN_AFTER = timedelta(days=1)

# Whether what an entry tells of was done, of a cluster's id. Raises `MetadataError`, `AppError`.
Check = Callable[[str, AuditEntry], bool]
_checks: dict[str, Check] = {}


def register_check(action: str, check: Check) -> None:
    """Has a function say whether an announced change was done."""
    _checks[action] = check


@contextmanager
def announced(
    *,
    actor: Actor,
    cluster: Cluster,
    action: str,
    target: tuple[str, str],
    detail: Mapping[str, object],
) -> Iterator[None]:
    """Announces a change, has the block make it, and adds the entry. `target`: type and id.

    What the block refuses (`UserError`) was not done. After any other error nobody knows: it is
    looked for. The caller has found that there is something to do.
    """
    entry = new_entry(
        actor=actor, action=action, target_type=target[0], target_id=target[1], detail=detail
    )
    # Whoever looks after announcements leaves it alone for as long as this transaction lasts.
    locks.lock(LOCK, entry.pk)
    _announce(entry, cluster)
    try:
        yield
    except UserError:
        _take_back(entry)
        raise
    entry.save(force_insert=True)
    # Also the same by who died before it was done: it is done now, and told once.
    Announcement.objects.filter(
        cluster_id=cluster.pk,
        entry__action=action,
        entry__target_id=entry.target_id,
        entry__detail=entry.detail,
    ).delete()


def tell_done(*, cluster: Cluster, action: str) -> None:
    """Tells of what dead requests have done, before this one makes it undone.

    Raises `MetadataError`, `AppError`.
    """
    for announcement in Announcement.objects.filter(cluster_id=cluster.pk, entry__action=action):
        entry = _entry_of(announcement)
        if locks.try_lock(LOCK, entry.pk) and _checks[action](cluster.pk, entry):
            entry.save(force_insert=True)
            announcement.delete()


def settle_announcements() -> int:
    """Goes on with what dead requests announced; gives how many entries were added.

    Safe to repeat, to lose and to run twice at a time. Never raises for a cell or brokers that do
    not answer: it comes back.
    """
    with system_scope():
        rows = Announcement.objects.order_by("created_at")
        found = list(rows.values_list("organization_id", "pk"))
    added = 0
    for organization_id, announcement_id in found:
        try:
            with organization_scope(organization_id):
                added += _settle(announcement_id)
        except Exception:
            # One announcement must not keep those behind it.
            logger.exception("announcement.failed", extra={"announcement": announcement_id})
    return added


def _settle(announcement_id: str) -> bool:
    if not locks.try_lock(LOCK, announcement_id):
        return False  # its request is at it
    announcement = Announcement.objects.filter(pk=announcement_id).first()
    if announcement is None:
        return False
    age, entry = now() - announcement.created_at, _entry_of(announcement)
    try:
        done = _checks[entry.action](announcement.cluster_id, entry)
    except (MetadataError, AppError) as error:
        logger.info("announcement.later", extra={"entry": entry.pk, "error": str(error)})
        if age < UNKNOWN_AFTER:
            return False
        done, entry.detail = True, {**entry.detail, "outcome": "unknown"}
    if not done and age < ARRIVED_AFTER:
        return False
    if done:
        entry.save(force_insert=True)
    announcement.delete()
    return done


def _entry_of(announcement: Announcement) -> AuditEntry:
    return AuditEntry(
        id=announcement.pk,
        organization_id=announcement.organization_id,
        created_at=announcement.created_at,
        **announcement.entry,
    )


def _announce(entry: AuditEntry, cluster: Cluster) -> None:
    fields = {name: getattr(entry, name) for name in (*KEPT, "detail")}
    with committed_beside(entry.organization_id) as cursor:
        cursor.execute(
            "INSERT INTO provisioning_announcement"
            " (id, organization_id, cluster_id, created_at, entry) VALUES (%s, %s, %s, %s, %s)",
            [entry.pk, entry.organization_id, cluster.pk, entry.created_at, json.dumps(fields)],
        )


def _take_back(entry: AuditEntry) -> None:
    with committed_beside(entry.organization_id) as cursor:
        cursor.execute("DELETE FROM provisioning_announcement WHERE id = %s", [entry.pk])
