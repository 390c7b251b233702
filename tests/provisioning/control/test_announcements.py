"""Deletions whose request died: the audit log gets those that were made, and no others."""

from dataclasses import asdict
from datetime import timedelta

import psycopg
import pytest
from django.db import connections

from brokers.errors import UnavailableError
from brokers.metadata_records import Acl
from console.base.common.actor import system_actor
from console.base.common.clock import now
from console.base.common.locks import lock_key
from console.base.common.models import AuditEntry
from console.base.common.tenancy import organization_scope
from provisioning.administration.services import acls, announcing
from provisioning.models import Announcement, Cluster
from tests.console.scopes import as_request_of
from tests.provisioning.control.world import failing

ENTRY = Acl(
    principal="User:x",
    resource_type="TOPIC",
    resource_name="t",
    pattern_type="LITERAL",
    host="*",
    operation="READ",
    permission="ALLOW",
)
LONG = announcing.ARRIVED_AFTER + timedelta(seconds=1)


@pytest.fixture
def announce(tenant, cluster_id):
    """Leaves an announcement behind, as a request does that dies after it."""

    def leave(action, detail, target_id, age=timedelta(0)):
        with organization_scope(tenant.id):
            return Announcement.objects.create(
                id="aud_aaaaaaaaaaaaaaaaaaaa",
                organization_id=tenant.id,
                cluster_id=cluster_id,
                created_at=now() - age,
                entry={
                    "action": action,
                    "actor_kind": "user",
                    "actor_id": "usr_x",
                    "target_type": "cluster",
                    "target_id": target_id,
                    "request_id": "req_x",
                    "address": "192.0.2.1",
                    "detail": detail,
                },
            )

    return leave


@pytest.fixture
def died(announce, cluster_id):
    """A request that was to delete an ACL."""
    return lambda **more: announce("acl.delete", {"acls": [asdict(ENTRY)]}, cluster_id, **more)


@pytest.fixture
def store(cell, cluster_id):
    """The cluster's own metadata."""
    return cell.cluster(cluster_id)


@pytest.fixture
def left(tenant):
    """Counts the announcements, and the audit entries of deletions."""

    def count():
        with organization_scope(tenant.id):
            entries = AuditEntry.objects.filter(action__in=["acl.delete", "group.delete"])
            return Announcement.objects.count(), entries.count()

    return count


def test_a_deletion_that_was_made_is_logged_as_announced(died, tenant, left):
    announcement = died()
    assert announcing.settle_announcements() == 1
    assert left() == (0, 1)
    with organization_scope(tenant.id):
        entry = AuditEntry.objects.get(pk=announcement.pk)
    logged = (entry.action, entry.actor_id, entry.request_id, entry.address, entry.created_at)
    assert logged == ("acl.delete", "usr_x", "req_x", "192.0.2.1", announcement.created_at)


def test_a_deletion_that_may_still_arrive_is_waited_for(died, store, left):
    store.add_acls([ENTRY])
    died()
    assert announcing.settle_announcements() == 0
    assert left() == (1, 0)


def test_a_deletion_that_was_not_made_is_forgotten(died, store, left):
    store.add_acls([ENTRY])
    died(age=LONG)
    assert announcing.settle_announcements() == 0
    assert left() == (0, 0)


def test_a_request_that_lives_is_left_alone(died, left):
    announcement = died(age=LONG)
    settings = connections["default"].settings_dict
    with psycopg.connect(
        host=settings["HOST"], dbname=settings["NAME"], user=settings["USER"]
    ) as other:
        key = lock_key(announcing.LOCK, announcement.pk)
        other.execute("SELECT pg_advisory_xact_lock(%s)", [key])
        assert announcing.settle_announcements() == 0
    assert left() == (1, 0)


def test_a_cell_that_is_away_is_asked_later(died, left):
    died(age=LONG)
    with failing("list_acls", UnavailableError("away")):
        assert announcing.settle_announcements() == 0
    assert left() == (1, 0)
    assert announcing.settle_announcements() == 1
    assert left() == (0, 1)


def test_a_deletion_that_nobody_can_find_out_about_is_logged_as_unknown(
    announce, cluster_id, tenant, left
):
    target = f"{cluster_id}/g"
    announcement = announce("group.delete", {"group": "g"}, target, age=timedelta(hours=23))
    # The cluster sleeps: only its brokers know.
    assert announcing.settle_announcements() == 0
    with organization_scope(tenant.id):
        Announcement.objects.update(created_at=now() - timedelta(hours=25))
    assert announcing.settle_announcements() == 1
    assert left() == (0, 1)
    with organization_scope(tenant.id):
        entry = AuditEntry.objects.get(pk=announcement.pk)
    assert entry.detail == {"group": "g", "outcome": "unknown"}


def test_a_deletion_is_logged_before_the_same_is_created_again(died, cluster_id, tenant, left):
    died()
    with as_request_of(tenant.id):
        cluster = Cluster.objects.get(pk=cluster_id)
        acls.create_acls(actor=system_actor(tenant.id), cluster=cluster, acls=[ENTRY])
    assert left() == (0, 1)
    assert announcing.settle_announcements() == 0


def test_a_deletion_by_a_repeated_request_is_logged_once(died, cluster_id, store, tenant, left):
    store.add_acls([ENTRY])
    died()
    with as_request_of(tenant.id):
        cluster = Cluster.objects.get(pk=cluster_id)
        acls.delete_acls(
            actor=system_actor(tenant.id), cluster=cluster, matching={"principal": "User:x"}
        )
    assert left() == (0, 1)
