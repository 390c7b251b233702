"""A repeated request adopts what its first attempt left, and nothing that somebody else made."""

from __future__ import annotations

from datetime import timedelta

import pytest

from brokers.errors import UnavailableError
from brokers.metadata import CellStore
from console.base.common.clock import now
from console.base.common.conf import config
from console.base.common.models import AuditEntry
from provisioning.administration.services import unrecorded
from provisioning.cells import cell_store
from provisioning.choices import Intent
from provisioning.models import Cluster, Operation
from provisioning.reconciling import plan as plans
from provisioning.reconciling import service as reconciling
from tests.console import cases
from tests.console.cases import assert_problem
from tests.provisioning.control.world import failing

TOPIC = {"name": "t", "partitions": 2, "configs": {"retention.ms": "1000"}}


@pytest.fixture
def topics(cluster_id):
    return f"/clusters/{cluster_id}/topics"


@pytest.fixture
def left(store):
    """A topic that a request made before it died, so that the audit log lacks it."""
    return store.create_topic("t", partitions=2, configs={"retention.ms": "1000"})


def test_the_topic_that_a_dead_request_left_is_the_one_asked_for(api, topics, left):
    made = api().post(topics, TOPIC)
    assert (made.status_code, made.json()["id"]) == (201, left.id)
    # The log has it now, so it is not adopted again.
    cases.assert_problem(api().post(topics, TOPIC), 409, "name_taken")


@pytest.mark.usefixtures("left")
@pytest.mark.parametrize("other", [{"partitions": 3}, {"configs": {}}])
def test_one_that_is_not_as_wanted_is_another(api, topics, other):
    cases.assert_problem(api().post(topics, {**TOPIC, **other}), 409, "name_taken")


@pytest.mark.usefixtures("left")
def test_one_that_lies_there_for_long_is_nobodys_repetition(api, topics, monkeypatch):
    monkeypatch.setattr(unrecorded, "REPEATED", timedelta(0))
    cases.assert_problem(api().post(topics, TOPIC), 409, "name_taken")


@pytest.mark.usefixtures("left", "in_tenant")
def test_one_that_a_client_made_is_the_clients(api, topics, tenant, cluster_id):
    AuditEntry.objects.create(
        organization_id=tenant.id,
        action="topic.create",
        actor_kind="kafka",
        target_type="topic",
        target_id=f"{cluster_id}/t",
        request_id="-",
    )
    cases.assert_problem(api().post(topics, TOPIC), 409, "name_taken")


def test_a_deletion_is_repeated_once(api, topics, store):
    api().post(topics, TOPIC)
    store.delete_topic("t")
    assert api().delete(f"{topics}/t").status_code == 204
    cases.assert_problem(api().delete(f"{topics}/t"), 404, "not_found")


def test_partitions_that_the_log_knows_are_not_added_again(api, topics, store):
    api().post(topics, TOPIC)
    cases.assert_problem(api().post(f"{topics}/t/partitions", {"count": 2}), 422)
    store.create_partitions("t", 4)
    assert api().post(f"{topics}/t/partitions", {"count": 4}).status_code == 200
    cases.assert_problem(api().post(f"{topics}/t/partitions", {"count": 4}), 422)


def test_a_topic_that_is_back_is_not_brought_back_again(api, topics, store):
    api().post(topics, TOPIC)
    api().delete(f"{topics}/t")
    (gone,) = store.deleted_topics()
    path = topics.replace("/topics", f"/deleted-topics/{gone.id}:undelete")
    store.undelete_topic(gone.id)
    assert api().post(path).status_code == 200
    cases.assert_problem(api().post(path), 404, "not_found")


@pytest.fixture
def purged(cluster_id, in_tenant):
    """A cluster whose purge is over."""
    Operation.objects.all().delete()
    Cluster.objects.filter(pk=cluster_id).update(intent=Intent.PURGED)
    return cluster_id


@pytest.mark.usefixtures("in_tenant")
def test_storage_that_does_not_let_go_keeps_a_purge_open(api, cluster_id, monkeypatch):
    folder = config().cell.dfs / cluster_id
    folder.mkdir(parents=True)
    Cluster.objects.filter(pk=cluster_id).update(
        intent=Intent.DELETED, deleted_at=now() - timedelta(days=8)
    )

    def refuse(_):
        raise OSError(16, "busy")

    with monkeypatch.context() as patch:
        patch.setattr("shutil.rmtree", refuse)
        reconciling.sweep_clusters()
    # It has begun, so nobody restores the cluster.
    assert Cluster.objects.get(pk=cluster_id).intent == Intent.PURGING
    restored = api().post(f"/clusters/{cluster_id}:undelete", {})
    assert_problem(restored, 404, "not_found")
    reconciling.sweep_clusters()
    assert Cluster.objects.get(pk=cluster_id).intent == Intent.PURGED
    assert not folder.exists()


def test_what_arrives_in_the_cell_after_a_purge_goes(purged):
    """A worker that hung for hours wrote it: after the purge nothing can refuse that."""
    assert cell_store().spec(purged) is not None
    with failing("remove_spec", UnavailableError("away"), owner=CellStore):
        assert reconciling.forget_purged() == 0
    assert reconciling.forget_purged() == 1
    assert cell_store().spec(purged) is None
    assert reconciling.forget_purged() == 0


def test_a_purged_cluster_that_the_cell_keeps_holds_up_no_other(purged, make_cluster, in_tenant):
    other = make_cluster()
    Operation.objects.all().delete()
    Cluster.objects.filter(pk=other).update(intent=Intent.PURGED)
    with failing("remove_spec", UnavailableError("away"), owner=CellStore):
        assert reconciling.forget_purged() == 1
    assert len([pk for pk in (purged, other) if cell_store().spec(pk)]) == 1
    assert reconciling.forget_purged() == 1


def test_a_cluster_of_the_cell_without_a_row_stays(cluster_id, in_tenant):
    """It may be younger than the backup that the rows came from."""
    Operation.objects.all().delete()
    Cluster.objects.filter(pk=cluster_id).delete()
    assert reconciling.forget_purged() == 0
    assert cell_store().spec(cluster_id) is not None


@pytest.mark.parametrize(
    ("deletion", "dated"),
    [((0, None), [(500_000, None)]), ((0, 600_000), [(500_000, 600_000)]), ((0, 400_000), [])],
)
def test_a_deletion_begins_when_the_cell_got_it_also_where_the_worker_died(deletion, dated):
    """A worker wrote to the cell that it began at 500 s, and died before it changed the row."""
    assert plans.date_deletions([deletion], reported=[500_000], now_ms=900_000) == dated
