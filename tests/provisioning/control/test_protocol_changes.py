"""Changes of Kafka clients are in the audit log once, also where a worker dies in between."""

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from brokers.errors import UnavailableError
from brokers.metadata import ClusterStore
from brokers.metadata_records import ProtocolChange
from console.base.common.ids import is_id
from console.base.common.models import AuditEntry
from console.base.common.tenancy import organization_scope
from provisioning.administration.services.protocol_changes import (
    entry_of,
    find_gaps,
    ingest_protocol_changes,
)
from provisioning.cells import cluster_store
from provisioning.reconciling import service as reconciling
from tests.provisioning.control.clients import client_settings
from tests.provisioning.control.world import failing, running_broker

CHANGE = ProtocolChange(
    sequence=7,
    at_ms=1_700_000_000_123,
    principal="User:cred_a",
    client_id="admin-1",
    address="203.0.113.9",
    action="topic.create",
    target_type="topic",
    target="orders",
    detail={"partitions": "3"},
)
LIMIT_S = 30


def entries(tenant):
    with organization_scope(tenant.id):
        return list(AuditEntry.objects.filter(actor_kind="kafka").order_by("created_at"))


@pytest.fixture
def changed(api, cluster_id):
    """A cluster in which a client has made two topics over the Kafka protocol."""
    with running_broker(cluster_id):
        settings = client_settings(api, cluster_id)
        admin = AdminClient({**settings, "client.id": "deployer"})
        for name in ("orders", "payments"):
            admin.create_topics([NewTopic(name, 3)])[name].result(LIMIT_S)
    return cluster_id


def test_what_a_client_changed_is_in_the_log_with_who_it_was(api, tenant, changed):
    reconciling.sweep_clusters()
    shown = api().get("/audit-log", query={"action": "topic.create"}).json()["items"]
    by_target = {item["target"]["id"]: item for item in shown}
    assert set(by_target) == {f"{changed}/orders", f"{changed}/payments"}
    entry = by_target[f"{changed}/orders"]
    assert entry["source"] == "kafka"
    # The actor has the name of its credential.
    assert entry["actor"]["name"] == "app"
    assert entry["actor"]["id"].startswith("User:cred_")
    assert entry["detail"]["client_id"] == "deployer"
    assert entry["address"]
    # The cell has forgotten them.
    assert cluster_store(changed).changes() == []
    reconciling.sweep_clusters()
    assert len(entries(tenant)) == 2


def test_a_worker_that_dies_in_between_writes_nothing_twice(tenant, changed):
    with failing("forget_changes", UnavailableError("away")):
        ingest_protocol_changes(organization_id=tenant.id, cluster_id=changed)
    first = entries(tenant)
    assert len(first) == 2
    assert len(cluster_store(changed).changes()) == 2
    assert ingest_protocol_changes(organization_id=tenant.id, cluster_id=changed) == 2
    assert [entry.pk for entry in entries(tenant)] == [entry.pk for entry in first]
    assert cluster_store(changed).changes() == []


def test_a_cell_that_is_away_loses_nothing(tenant, changed):
    with failing("changes", UnavailableError("away")):
        assert ingest_protocol_changes(organization_id=tenant.id, cluster_id=changed) == 0
    assert entries(tenant) == []
    reconciling.sweep_clusters()
    assert len(entries(tenant)) == 2


def test_many_changes_are_taken_in_page_by_page(tenant, cluster_id, monkeypatch):
    left = [
        ProtocolChange(**{**vars_of(CHANGE), "sequence": number, "target": f"topic-{number}"})
        for number in range(1, 1201)
    ]
    asked = []

    def changes(store, after=0, limit=500):
        asked.append(limit)
        return [change for change in left if change.sequence > after][:limit]

    def forget(store, up_to):
        left[:] = [change for change in left if change.sequence > up_to]

    monkeypatch.setattr(ClusterStore, "changes", changes)
    monkeypatch.setattr(ClusterStore, "forget_changes", forget)
    assert ingest_protocol_changes(organization_id=tenant.id, cluster_id=cluster_id) == 1200
    assert len(entries(tenant)) == 1200
    assert left == []
    assert len(asked) == 3


def vars_of(change):
    return {name: getattr(change, name) for name in ProtocolChange.__slots__}


def test_the_same_change_is_the_same_entry():
    one, again = entry_of("org_a", "cl_a", CHANGE), entry_of("org_a", "cl_a", CHANGE)
    assert one.pk == again.pk
    assert is_id(one.pk, "aud")
    assert (one.actor_id, one.target_id) == ("User:cred_a", "cl_a/orders")
    assert one.created_at.isoformat() == "2023-11-14T22:13:20.123000+00:00"
    assert one.detail == {
        "partitions": "3",
        "change": "7",
        "client_id": "admin-1",
        "cluster_id": "cl_a",
    }
    # After a restore from a backup the cell gives the same numbers again.
    other = ProtocolChange(**{**vars_of(CHANGE), "at_ms": CHANGE.at_ms + 1})
    assert entry_of("org_a", "cl_a", other).pk != one.pk
    assert entry_of("org_a", "cl_b", CHANGE).pk != one.pk


def test_what_is_too_long_is_cut_off():
    long = ProtocolChange(**{**vars_of(CHANGE), "target": "x" * 40_000, "principal": "y" * 999})
    entry = entry_of("org_a", "cl_a", long)
    assert len(entry.target_id) == 512
    assert len(entry.actor_id) == 255
    detail = {f"{'k' * 2_000}{number}": "v" * 40_000 for number in range(500)}
    loud = ProtocolChange(**{**vars_of(CHANGE), "client_id": "c" * 32_000, "detail": detail})
    entry = entry_of("org_a", "cl_a", loud)
    assert len(str(entry.detail)) < 80_000
    assert max(len(text) for pair in entry.detail.items() for text in pair) == 1_024


def test_what_came_through_a_gateway_names_its_connection(tenant):
    through = ProtocolChange(**{**vars_of(CHANGE), "connection": "con_0123456789abcdef"})
    assert entry_of(tenant.id, "cl_1", through).request_id == "con_0123456789abcdef"
    assert entry_of(tenant.id, "cl_1", CHANGE).request_id == "-"


def numbered(number, **changes):
    """A change of this number, with its entry."""
    change = ProtocolChange(**{**vars_of(CHANGE), "sequence": number, **changes})
    return change, entry_of("org_a", "cl_a", change)


def gaps_of(recorded, *numbered_changes, known=()):
    changes, made = zip(*numbered_changes, strict=True)
    gaps, last = find_gaps(recorded, changes, made, {entry.pk for entry in known})
    return [(gap.after, gap.next.sequence, gap.missing) for gap in gaps], last


def test_numbers_that_are_missing_are_found():
    one, two, five = numbered(1), numbered(2), numbered(5)
    assert gaps_of(0, one, two) == ([], 2)
    assert gaps_of(0, one, two, five) == ([(2, 5, 2)], 5)
    assert gaps_of(0, two) == ([(0, 2, 1)], 2)
    # Of a cluster of an earlier release it is not known which was the last.
    assert gaps_of(None, five) == ([], 5)
    # A sweep that died in between left them in the cell.
    assert gaps_of(2, one, two, known=[one[1], two[1]]) == ([], 2)
    # The cell's metadata came back from a backup: its numbers begin again, with other changes.
    again = numbered(2, at_ms=CHANGE.at_ms + 1)
    assert gaps_of(5, again, numbered(3), known=[two[1]]) == ([(5, 2, None)], 3)
    # It brought back changes that are in the log.
    assert gaps_of(5, one, two, known=[one[1], two[1]]) == ([], 5)


def test_a_gap_is_in_the_log_once(tenant, cluster_id, monkeypatch):
    """As a broker of a release before 0.2 leaves it, which dropped the oldest changes."""
    left = [numbered(number)[0] for number in (1, 2, 2_003)]
    monkeypatch.setattr(ClusterStore, "changes", lambda _, after, limit: left[:limit])
    with failing("forget_changes", UnavailableError("away"), UnavailableError("away")):
        for _ in range(2):
            ingest_protocol_changes(organization_id=tenant.id, cluster_id=cluster_id)
    with organization_scope(tenant.id):
        (gap,) = AuditEntry.objects.filter(action="cluster.changes_missing")
        assert AuditEntry.objects.filter(actor_kind="kafka").count() == 3
    assert gap.target_id == cluster_id
    assert (gap.detail["after"], gap.detail["next"], gap.detail["missing"]) == ("2", "2003", "2000")


def test_changes_of_one_millisecond_keep_their_order(tenant, cluster_id, monkeypatch):
    """Also where a page ends among them."""
    times = [CHANGE.at_ms + number // 300 for number in range(1_000)]
    left = [numbered(number + 1, at_ms=at_ms)[0] for number, at_ms in enumerate(times)]

    def forget(store, up_to):
        left[:] = [change for change in left if change.sequence > up_to]

    monkeypatch.setattr(ClusterStore, "changes", lambda _, after, limit: left[:limit])
    monkeypatch.setattr(ClusterStore, "forget_changes", forget)
    assert ingest_protocol_changes(organization_id=tenant.id, cluster_id=cluster_id) == 1_000
    assert [entry.detail["change"] for entry in entries(tenant)] == [
        str(number) for number in range(1, 1_001)
    ]
