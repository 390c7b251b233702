"""Announces deletions that leave no trace, so that the audit log has each of them.

The deletion is made in the cell, its audit entry in PostgreSQL. A request that died between the two
would leave a deletion without an entry, and the same request sent again would find nothing to
delete. So the entry is first committed as an announcement, before the deletion is made, and becomes
a row of the audit log with the request's last commit. The sweep goes on with
announcements of requests that died: it finds out whether the deletion was made, and if so adds the
entry.
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
from console.base.common.transactions import (
    commit_so_far,
    current_transaction,
    task_transaction,
)
from provisioning.models import Announcement, Cluster

logger = logging.getLogger(__name__)

# The entry's fields that an announcement stores under the same names.
STORED_FIELDS = (
    *("action", "actor_kind", "actor_id", "target_type", "target_id"),
    *("request_id", "address"),
)
# The kind of the lock that a request holds on its announcement.
LOCK = "announcement"
# A call that hung has reached the cell after so long, or never does.
ARRIVED_AFTER = timedelta(minutes=2)
# After so long without a result the entry is added with `outcome: unknown`: an audit log that names
# a deletion that may not have happened does less harm than one that lacks it.
UNKNOWN_AFTER = timedelta(days=1)

# (cluster id, entry) → whether the deletion that the entry describes was made. Raises
# `MetadataError` or `AppError` where that cannot be found out now.
Check = Callable[[str, AuditEntry], bool]
_checks: dict[str, Check] = {}


def register_check(action: str, check: Check) -> None:
    """Registers the function that says whether an announced deletion of this action was made."""
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
    """Announces a deletion, runs the block that makes it, and adds the audit entry.

    `target` is (type, id). A `UserError` of the block means that nothing was deleted, and takes the
    announcement back. After any other error the announcement stays, and the sweep finds out whether
    the deletion was made. The caller has checked that there is something to delete.
    """
    entry = new_entry(
        actor=actor, action=action, target_type=target[0], target_id=target[1], detail=detail
    )
    # Until the request ends, the sweep and other requests leave the announcement alone.
    locks.lock(LOCK, entry.pk)
    _announce(entry, cluster)
    try:
        yield
    except UserError:
        _take_back(entry)
        raise
    entry.save(force_insert=True)
    # Earlier requests that announced the same deletion and died go too: the log has it once.
    Announcement.objects.filter(
        cluster_id=cluster.pk,
        entry__action=action,
        entry__target_id=entry.target_id,
        entry__detail=entry.detail,
    ).delete()


def record_earlier_deletions(*, cluster: Cluster, action: str) -> None:
    """Adds the audit entries of deletions that requests made before they died.

    Call it before something is created again that they may have deleted: afterwards nobody could
    find out whether they did. Raises `MetadataError`, `AppError`.
    """
    for announcement in Announcement.objects.filter(cluster_id=cluster.pk, entry__action=action):
        entry = _entry_of(announcement)
        if locks.try_lock(LOCK, entry.pk) and _checks[action](cluster.pk, entry):
            entry.save(force_insert=True)
            announcement.delete()
            commit_so_far()


def settle_announcements() -> int:
    """Goes on with announcements whose requests died; returns how many audit entries were added.

    It may be repeated, lost and run twice at a time. A cell or brokers that do not answer raise
    nothing: the announcement stays for the next call.
    """
    with system_scope():
        rows = Announcement.objects.order_by("created_at")
        keys = list(rows.values_list("organization_id", "pk"))
    added = 0
    for organization_id, announcement_id in keys:
        try:
            with task_transaction(), organization_scope(organization_id):
                added += _settle_announcement(announcement_id)
        except Exception:
            # One announcement that fails must not stop those behind it.
            logger.exception("announcement.failed", extra={"announcement": announcement_id})
    return added


def _settle_announcement(announcement_id: str) -> bool:
    if not locks.try_lock(LOCK, announcement_id):
        return False  # its request is still running
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
    fields = {name: getattr(entry, name) for name in (*STORED_FIELDS, "detail")}
    if current_transaction() is not None:
        Announcement.objects.create(
            id=entry.pk,
            organization_id=entry.organization_id,
            cluster_id=cluster.pk,
            created_at=entry.created_at,
            entry=fields,
        )
        commit_so_far()
        return
    with committed_beside(entry.organization_id) as cursor:
        cursor.execute(
            "INSERT INTO provisioning_announcement"
            " (id, organization_id, cluster_id, created_at, entry) VALUES (%s, %s, %s, %s, %s)",
            [entry.pk, entry.organization_id, cluster.pk, entry.created_at, json.dumps(fields)],
        )


def _take_back(entry: AuditEntry) -> None:
    if current_transaction() is not None:
        Announcement.objects.filter(pk=entry.pk).delete()
        commit_so_far()
        return
    with committed_beside(entry.organization_id) as cursor:
        cursor.execute("DELETE FROM provisioning_announcement WHERE id = %s", [entry.pk])
