"""Deletions wait while too many brokers are unhealthy; staff may permit one, which is logged."""

from datetime import timedelta

import pytest

from console.base.common.clock import now, unix_ms
from console.base.common.tenancy import organization_scope
from provisioning.cell.notes import KEEPER, CellHealth, health_of, put_health, removal_of
from provisioning.models import BreakGlass, Cluster
from provisioning.reconciling import service as reconciling
from tests.console import cases
from tests.console.browsers import staff_browser
from tests.provisioning.control.world import put_status

REASON = "Its owner asked for it by telephone."


@pytest.fixture
def hold(cell):
    """Writes the keeper's note that deletions are held, or with `held=False` allowed."""

    def note(*, held=True, **fields):
        health = CellHealth(unix_ms(now()), 40, 12, held=held, **fields)
        put_health(cell, health)
        assert health_of(cell) == health

    yield note
    # All tests share the cell.
    cell.remove_cluster(KEEPER)


@pytest.fixture
def staff(db):
    """A browser of somebody who runs the service."""
    return staff_browser()


def delete(api, cluster_id):
    name = api().get(f"/clusters/{cluster_id}").json()["name"]
    return api().delete(f"/clusters/{cluster_id}", query={"name": name})


def permit(staff, cluster_id, **fields):
    answer = staff.post(f"/staff/clusters/{cluster_id}:break-glass", {"reason": REASON, **fields})
    assert answer.status_code == 201, answer.content
    return answer.json()


def permitted_by(cell, cluster_id):
    removal = removal_of(cell, cluster_id)
    assert removal is not None
    return removal.break_glass


def deleted_long_ago(api, make_cluster, reconcile, tenant):
    cluster_id = make_cluster()
    assert delete(api, cluster_id).status_code == 202
    reconcile(cluster_id)
    put_status(cluster_id, "asleep", 2)
    reconcile(cluster_id)
    with organization_scope(tenant.id):
        Cluster.objects.filter(pk=cluster_id).update(deleted_at=now() - timedelta(days=8))
    return cluster_id


def test_nothing_is_deleted_while_deletions_are_held(api, cluster_id, hold):
    hold()
    document = cases.assert_problem(delete(api, cluster_id), 409, "deletions_held")
    # The answer has no numbers of the whole cell.
    assert "Try again later" in document["detail"]
    assert "40" not in document["detail"]
    hold(held=False)
    assert delete(api, cluster_id).status_code == 202


def test_a_permit_lets_one_deletion_pass_and_is_logged(
    api, cluster_id, make_cluster, reconcile, hold, staff
):
    hold()
    other = make_cluster()
    made = permit(staff, cluster_id)
    assert made["used_at"] is None
    cases.assert_problem(delete(api, other), 409, "deletions_held")
    assert delete(api, cluster_id).status_code == 202
    (listed,) = staff.get("/staff/break-glass").json()["items"]
    assert (listed["id"], listed["used_at"] is None) == (made["id"], False)
    # The organization's people see who did it, why, and that it was used.
    log = {"action": "cluster.break_glass", "target_id": cluster_id}
    (entry,) = api().get("/audit-log", query=log).json()["items"]
    assert (entry["id"], entry["actor"]["kind"]) == (made["audit_id"], "staff")
    assert entry["detail"]["reason"] == REASON
    log["action"] = "cluster.use_break_glass"
    (used,) = api().get("/audit-log", query=log).json()["items"]
    assert used["detail"] == {"audit_id": made["audit_id"]}
    # The permit is used up.
    reconcile(cluster_id)
    put_status(cluster_id, "asleep", 2)
    reconcile(cluster_id)
    assert api().post(f"/clusters/{cluster_id}:undelete").status_code == 202
    reconcile(cluster_id)
    cases.assert_problem(delete(api, cluster_id), 409, "deletions_held")


def test_a_permit_expires(api, cluster_id, hold, staff, tenant):
    hold()
    permit(staff, cluster_id, expires_in_s=60)
    with organization_scope(tenant.id):
        BreakGlass.objects.update(expires_at=now())
    cases.assert_problem(delete(api, cluster_id), 409, "deletions_held")
    too_long = {"reason": REASON, "expires_in_s": 90_000}
    answer = staff.post(f"/staff/clusters/{cluster_id}:break-glass", too_long)
    cases.assert_problem(answer, 422)
    cases.assert_problem(staff.post(f"/staff/clusters/{cluster_id}:break-glass", {}), 422)


def test_data_stays_while_deletions_are_held(
    api, make_cluster, reconcile, tenant, cell, hold, staff
):
    cluster_id = deleted_long_ago(api, make_cluster, reconcile, tenant)
    hold()
    reconciling.sweep_clusters()
    assert cell.spec(cluster_id).state == "deleted"
    assert removal_of(cell, cluster_id) is None
    made = permit(staff, cluster_id)
    reconciling.sweep_clusters()
    removal = removal_of(cell, cluster_id)
    assert removal is not None
    assert cell.spec(cluster_id) is None
    assert removal.permit_at(unix_ms(now())) == made["audit_id"]
    assert removal.permit_at(unix_ms(now()) + 3_601_000) == ""


def test_a_permit_reaches_the_keeper_after_the_purge_too(
    api, make_cluster, reconcile, tenant, cell, hold, staff
):
    cluster_id = deleted_long_ago(api, make_cluster, reconcile, tenant)
    reconciling.sweep_clusters()
    assert permitted_by(cell, cluster_id) == ""
    hold()
    made = permit(staff, cluster_id)
    assert permitted_by(cell, cluster_id) == made["audit_id"]


def test_the_purge_of_a_cluster_is_reported_again(api, make_cluster, reconcile, tenant, cell, hold):
    """The metadata came back from a backup that is older than the report to the keeper."""
    cluster_id = deleted_long_ago(api, make_cluster, reconcile, tenant)
    reconciling.sweep_clusters()
    cell.remove_cluster(cluster_id)
    living = make_cluster()
    hold(held=False, orphans=(cluster_id, living, "cl_unheardof"))
    reconciling.sweep_clusters()
    assert removal_of(cell, cluster_id) is not None
    assert removal_of(cell, living) is None
    assert removal_of(cell, "cl_unheardof") is None
    assert cell.spec(living) is not None


def test_a_cell_that_cannot_be_asked_holds_nothing(api, cluster_id, monkeypatch):
    monkeypatch.setattr("provisioning.clusters.services.deletion_guard.cell_health", lambda: None)
    assert delete(api, cluster_id).status_code == 202
