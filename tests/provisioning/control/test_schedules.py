"""A cluster that is awake at times of the week, also where sweeps are late, missing or doubled."""

from datetime import UTC, datetime, timedelta

import pytest
from django.utils import timezone

from console.base.common.models import AuditEntry
from console.base.common.tenancy import organization_scope
from provisioning.reconciling import service as reconciling
from provisioning.reconciling.plan import Observed
from tests.console import cases
from tests.provisioning.control.world import put_status

OFFICE = {
    "days": ["mon", "tue", "wed", "thu", "fri"],
    "start": "07:00",
    "end": "19:00",
    "time_zone": "Europe/Zurich",
}
# A Sunday; the Monday behind it begins at 06:00 UTC for the office.
SUNDAY = datetime(2030, 11, 24, 12, tzinfo=UTC)
OPENS = datetime(2030, 11, 25, 6, tzinfo=UTC)
CLOSES = datetime(2030, 11, 25, 18, tzinfo=UTC)


@pytest.fixture
def at(monkeypatch):
    """Sets the control plane's clock."""

    def set_clock(moment):
        monkeypatch.setattr(timezone, "now", lambda: moment)

    return set_clock


@pytest.fixture
def scheduled(api, make_cluster, reconcile, at):
    """A cluster with office hours, at a weekend."""
    cluster_id = make_cluster()
    at(SUNDAY)
    body = {"spec": {"schedules": [OFFICE]}}
    shown = api().patch(f"/clusters/{cluster_id}", body).json()
    assert shown["spec"]["schedules"] == [OFFICE]
    assert shown["schedule"] == {"awake": False, "until": "2030-11-25T06:00:00Z"}
    reconcile(cluster_id)
    return cluster_id


def followed(tenant, cluster_id):
    with organization_scope(tenant.id):
        entries = AuditEntry.objects.filter(target_id=cluster_id, action="cluster.follow_schedule")
        return [entry.detail["awake"] for entry in entries.order_by("created_at", "id")]


def test_the_sweep_keeps_it_awake_in_its_hours(scheduled, cell, at, tenant):
    assert cell.spec(scheduled).idle_timeout_ms == 300_000
    before = cell.spec(scheduled).generation
    at(OPENS - timedelta(seconds=1))
    reconciling.sweep_clusters()
    assert cell.spec(scheduled).idle_timeout_ms == 300_000
    at(OPENS)
    # The second sweep has nothing left to do.
    for _ in range(2):
        reconciling.sweep_clusters()
        assert cell.spec(scheduled).idle_timeout_ms == 0
    at(CLOSES)
    reconciling.sweep_clusters()
    assert cell.spec(scheduled).idle_timeout_ms == 300_000
    # The generation stays, so that an ETag that somebody holds is still valid.
    assert cell.spec(scheduled).generation == before
    assert followed(tenant, scheduled) == [True, False]


def test_ticks_that_never_came_leave_nothing_behind(scheduled, cell, at, tenant):
    """After a day and a half without a sweep only the present moment counts."""
    at(OPENS + timedelta(hours=36))
    reconciling.sweep_clusters()
    assert cell.spec(scheduled).idle_timeout_ms == 300_000
    assert followed(tenant, scheduled) == []
    at(OPENS + timedelta(hours=48))
    reconciling.sweep_clusters()
    assert cell.spec(scheduled).idle_timeout_ms == 0


def test_a_cell_that_was_away_gets_the_change_later(scheduled, cell, at, row, monkeypatch):
    at(OPENS)
    with monkeypatch.context() as away:
        unknown = Observed(known=False)
        away.setattr(reconciling, "observe_cluster", lambda _cluster: unknown)
        reconciling.sweep_clusters()
    assert cell.spec(scheduled).idle_timeout_ms == 300_000
    at(OPENS + timedelta(hours=1))
    # It is still due since the missed moment, so the sweep looks at it early.
    assert row(scheduled).schedule_due_at == OPENS
    reconciling.sweep_clusters()
    assert cell.spec(scheduled).idle_timeout_ms == 0
    assert row(scheduled).schedule_due_at == CLOSES


def test_it_is_not_put_to_sleep_in_its_hours(scheduled, api, at, cell, reconcile):
    put_status(scheduled, "running", 2)
    at(OPENS)
    document = cases.assert_problem(api().post(f"/clusters/{scheduled}:sleep"), 409)
    assert (document["code"], "schedule" in document["detail"]) == ("cluster_never_sleeps", True)
    assert api().patch(f"/clusters/{scheduled}", {"spec": {"schedules": []}}).status_code == 200
    reconcile(scheduled)
    assert cell.spec(scheduled).idle_timeout_ms == 300_000
    shown = api().get(f"/clusters/{scheduled}").json()
    assert (shown["spec"]["schedules"], shown["schedule"]) == ([], None)


@pytest.mark.parametrize(
    ("change", "pointer"),
    [
        ({"days": []}, "/spec/schedules/0/days"),
        ({"end": None}, "/spec/schedules/0/end"),
        ({"days": ["someday"]}, "/spec/schedules/0/days/0"),
        ({"start": "7:00"}, "/spec/schedules/0/start"),
        ({"start": "24:00"}, "/spec/schedules/0/start"),
        ({"end": "24:01"}, "/spec/schedules/0/end"),
        ({"time_zone": "Zurich"}, "/spec/schedules/0/time_zone"),
    ],
)
def test_schedules_that_cannot_be_are_pointed_to(api, cluster_id, change, pointer):
    body = {"spec": {"schedules": [OFFICE | change]}}
    document = cases.assert_problem(api().patch(f"/clusters/{cluster_id}", body), 422)
    assert document["errors"][0]["pointer"] == pointer


def test_a_schedule_is_whole(api, cluster_id):
    body = {"spec": {"schedules": [{"days": ["mon"], "start": "07:00"}]}}
    document = cases.assert_problem(api().patch(f"/clusters/{cluster_id}", body), 422)
    assert document["errors"][0]["pointer"] == "/spec/schedules/0/end"
    daily = {"days": ["sun", "mon"], "start": "07:00", "end": "08:00"}
    shown = api().patch(f"/clusters/{cluster_id}", {"spec": {"schedules": [daily]}}).json()
    assert shown["spec"]["schedules"] == [daily | {"days": ["mon", "sun"], "time_zone": "UTC"}]
