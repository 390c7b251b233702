"""Alerts over REST, and how they are judged: without waking a cluster, with mails to members."""

from datetime import timedelta

import pytest
from django.core import mail
from psycopg.types.multirange import Int8Multirange
from psycopg.types.range import Int8Range

from brokers.errors import UnavailableError
from brokers.metadata import CellStore
from console.alerts import services
from console.base.common.actor import Role
from console.base.common.clock import now
from console.base.common.models import AuditEntry
from console.base.common.tenancy import organization_scope, system_scope
from metering.models import ClusterCoverage, ProvisionalMinute
from metering.periods import MINUTE_MS, from_ms, to_ms
from tests.console import cases
from tests.console.outbox import run_outbox
from tests.provisioning.control.world import failing, put_sample, put_status

MINUTE = timedelta(minutes=1)


class TestAlerts(cases.ListCases, cases.CreateCases, cases.UpdateCases, cases.DestroyCases):
    path = "/alerts"
    update_body = {"threshold": "7"}

    @pytest.fixture(autouse=True)
    def of_a_cluster(self, cluster_id):
        self.cluster_id = cluster_id

    def body(self):
        return {"cluster_id": self.cluster_id, "name": "a", "kind": "group_lag", "threshold": 9}


@pytest.fixture
def alert(api, cluster_id):
    """Returns a function that creates an alert over REST and returns its JSON."""

    def create_alert(**fields):
        body = {"cluster_id": cluster_id, "name": "slow", "kind": "group_lag", "threshold": 10}
        made = api().post("/alerts", {**body, "for_s": 120, **fields})
        assert made.status_code == 201, made.content
        return made.json()

    return create_alert


@pytest.fixture
def lag(cluster_id):
    """Returns a function that writes a keeper's sample with the lags of groups."""

    def sample(**lags):
        groups = [{"group": name, "lag": n, "lag_seconds": n / 2} for name, n in lags.items()]
        content = {"groups": groups, "topics": {}}
        put_sample(cluster_id, 1, content)

    return sample


def state_of(api, alert):
    return api().get(f"/alerts/{alert['id']}").json()


def test_an_alert_fires_and_ends_with_a_mail_each_and_wakes_no_cluster(
    api, alert, lag, later, cell, cluster_id, tenant
):
    made = alert()
    lag(checkout=25, other=3)
    mail.outbox.clear()
    for minutes, state in [(1, "ok"), (2, "ok"), (3, "firing"), (4, "firing")]:
        later(minutes * MINUTE)
        services.evaluate_alerts()
        assert state_of(api, made)["state"] == state
    shown = state_of(api, made)
    assert (shown["value"], shown["subject"]) == ("25", "checkout")
    run_outbox()
    (message,) = mail.outbox
    assert message.subject == "Alert: slow"
    assert message.to == [tenant.owner.email]
    assert "(checkout): 25 records" in message.body
    lag(checkout=2)
    for minutes in (5, 6, 7, 8):
        later(minutes * MINUTE)
        services.evaluate_alerts()
    run_outbox()
    assert [message.subject for message in mail.outbox] == ["Alert: slow", "Over: slow"]
    over = state_of(api, made)
    assert (over["state"], over["fired_at"]) == ("ok", shown["changed_at"])
    assert cell.wake(cluster_id) is None
    with organization_scope(tenant.id):
        entries = AuditEntry.objects.filter(target_id=made["id"]).order_by("created_at", "pk")
        actions = [(entry.action, entry.actor_kind) for entry in entries]
    assert sorted(actions) == [
        ("alert.create", "api_key"),
        ("alert.end", "system"),
        ("alert.fire", "system"),
    ]


def test_an_alert_neither_fires_nor_ends_while_the_cell_does_not_answer(api, alert, lag, later):
    made = alert(for_s=0)
    lag(checkout=25)
    services.evaluate_alerts()
    assert state_of(api, made)["state"] == "firing"
    with failing("status", UnavailableError("away"), owner=CellStore):
        later(MINUTE)
        services.evaluate_alerts()
    shown = state_of(api, made)
    assert (shown["state"], shown["value"]) == ("firing", None)


def test_a_group_may_have_any_name_that_kafka_allows(api, alert, lag):
    made = alert(for_s=0)
    lag(**{"\0" + "x" * 300: 25})
    assert services.evaluate_alerts() == 1
    shown = state_of(api, made)
    assert (shown["state"], shown["subject"]) == ("firing", "\ufffd" + "x" * 254)
    run_outbox()
    assert "x" * 254 in mail.outbox[-1].body


@pytest.mark.parametrize("for_s", [0, 120])
@pytest.mark.parametrize(
    "group",
    [
        {"group": "g"},
        # A greater lag than the column can hold.
        {"group": "g", "lag": 2**63, "lag_seconds": 1},
    ],
)
def test_an_alert_that_cannot_be_judged_stops_no_other(
    api, alert, lag, cell, make_cluster, group, for_s
):
    odd = make_cluster()
    put_sample(odd, 1, {"groups": [group], "topics": {}})
    lag(checkout=25)
    broken = alert(cluster_id=odd, for_s=for_s)
    fires, waits = alert(for_s=0), alert(for_s=120)
    assert services.evaluate_alerts() == 1
    assert state_of(api, fires)["state"] == "firing"
    assert (state_of(api, waits)["state"], state_of(api, waits)["value"]) == ("ok", "25")
    assert (state_of(api, broken)["state"], state_of(api, broken)["value"]) == ("ok", None)


def test_connections_and_groups_by_name_count(api, alert, lag, cluster_id):
    put_status(cluster_id, "asleep", connections=7)
    lag(a=100, b=4)
    connections = alert(kind="connections", threshold=6, for_s=0)
    seconds = alert(kind="group_lag_seconds", group="b", threshold=1, for_s=0)
    quiet = alert(group="b", threshold=4, for_s=0)
    assert services.evaluate_alerts() == 2
    assert state_of(api, connections)["value"] == "7"
    assert state_of(api, seconds)["value"] == "2"
    assert state_of(api, quiet)["state"] == "ok"


def test_storage_and_its_growth_come_from_metered_minutes(api, alert, tenant, cluster_id):
    size = alert(kind="storage_bytes", threshold=999, for_s=0)
    growth = alert(kind="storage_growth_bytes", threshold=600, for_s=0)
    until_ms = to_ms(now()) // MINUTE_MS * MINUTE_MS
    last = from_ms(until_ms - MINUTE_MS)
    with system_scope():
        ClusterCoverage.objects.create(
            cluster_id=cluster_id,
            organization_id=tenant.id,
            storage_ms=Int8Multirange([Int8Range(0, until_ms)]),
            as_of_ms=until_ms,
        )
        for minute, quantity in [(last, 1_000), (last - timedelta(days=1), 400)]:
            ProvisionalMinute.objects.create(
                organization_id=tenant.id,
                cluster_id=cluster_id,
                meter="storage_byte_minutes",
                minute=minute,
                quantity=quantity,
                billed=True,
            )
    assert services.evaluate_alerts() == 1
    assert (state_of(api, size)["state"], state_of(api, size)["value"]) == ("firing", "1000")
    assert (state_of(api, growth)["state"], state_of(api, growth)["value"]) == ("ok", "600")


def test_another_threshold_is_judged_anew(api, alert, lag):
    made = alert(for_s=0)
    lag(checkout=25)
    services.evaluate_alerts()
    changed = api().patch(f"/alerts/{made['id']}", {"threshold": 30}).json()
    assert (changed["state"], changed["generation"]) == ("ok", 2)
    assert services.evaluate_alerts() == 0


def test_mails_go_to_members_only(api, alert, lag, tenant):
    body = {"emails": ["nobody@example.com"]}
    made = alert(for_s=0, emails=[tenant.owner.email])
    document = cases.assert_problem(api().patch(f"/alerts/{made['id']}", body), 422)
    assert document["errors"][0]["pointer"] == "/emails/0"
    lag(checkout=25)
    services.evaluate_alerts()
    mail.outbox.clear()
    api().delete(f"/alerts/{made['id']}")
    # The mail of an alert that was removed meanwhile is not sent.
    run_outbox()
    assert mail.outbox == []


def test_a_group_belongs_to_kinds_of_groups(api, cluster_id):
    body = {"cluster_id": cluster_id, "name": "x", "kind": "connections", "threshold": 1}
    document = cases.assert_problem(api().post("/alerts", {**body, "group": "g"}), 422)
    assert document["errors"][0]["pointer"] == "/group"


def test_alerts_of_other_organizations_are_not_found(api, alert, other_tenant, cluster_id):
    made = alert()
    other = api(other_tenant.key)
    assert other.get("/alerts").json()["items"] == []
    cases.assert_problem(other.get(f"/alerts/{made['id']}"), 404, "not_found")
    body = {"cluster_id": cluster_id, "name": "x", "kind": "connections", "threshold": 1}
    document = cases.assert_problem(other.post("/alerts", body), 422)
    assert document["errors"][0]["pointer"] == "/cluster_id"


def test_a_viewer_sees_and_changes_nothing(api, alert, tenant):
    made = alert()
    viewer = api(tenant.keys[Role.VIEWER])
    assert viewer.get(f"/alerts/{made['id']}").status_code == 200
    cases.assert_problem(viewer.delete(f"/alerts/{made['id']}"), 403)
