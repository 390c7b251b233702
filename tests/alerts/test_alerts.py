"""Alerts over REST, and how they are judged: without waking a cluster, with mails to members."""

from datetime import timedelta
from importlib import import_module

import pytest
from django.core import mail
from django.db import connection
from psycopg.types.multirange import Int8Multirange
from psycopg.types.range import Int8Range

from brokers.errors import UnavailableError
from brokers.metadata import CellStore
from console.alerts import services
from console.alerts.models import Alert
from console.base.common.actor import Role
from console.base.common.clock import now
from console.base.common.conf import config
from console.base.common.models import AuditEntry
from console.base.common.tenancy import organization_scope, system_scope
from metering.models import ClusterCoverage, ProvisionalMinute, TopicName
from metering.periods import MINUTE_MS, from_ms, to_ms
from metering.services.minute_parts import make_day_parts
from provisioning.models import Cluster
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


@pytest.fixture
def judged_after(api, later):
    """Returns a function that judges all alerts at a minute, and returns an alert's JSON then."""

    def judge_at(minutes, alert):
        later(minutes * MINUTE)
        services.evaluate_alerts()
        return state_of(api, alert)

    return judge_at


def test_an_alert_fires_and_ends_with_a_mail_each_and_wakes_no_cluster(
    alert, lag, judged_after, cell, cluster_id, tenant
):
    made = alert()
    lag(checkout=25, other=3)
    mail.outbox.clear()
    shown = [judged_after(minutes, made) for minutes in (1, 2, 3, 4)]
    assert [look["state"] for look in shown] == ["pending", "pending", "firing", "firing"]
    # It names the group, and since when it is behind, from the first look on.
    assert {(look["value"], look["subject"]) for look in shown} == {("25", "checkout")}
    began, fired = shown[0]["evaluated_at"], shown[2]["evaluated_at"]
    assert {look["since"] for look in shown} == {began}
    assert [look["changed_at"] for look in shown] == [began, began, fired, fired]
    assert [look["fired_subject"] for look in shown] == ["", "", "checkout", "checkout"]
    run_outbox()
    (message,) = mail.outbox
    assert message.subject == "Alert: slow (checkout)"
    assert message.to == [tenant.owner.email]
    lag(checkout=2, other=3)
    over = [judged_after(minutes, made) for minutes in (5, 6, 7, 8)]
    assert [look["state"] for look in over] == ["firing", "firing", "ok", "ok"]
    back = over[0]["evaluated_at"]
    assert [look["back_since"] for look in over] == [back, back, None, None]
    ended = over[2]["evaluated_at"]
    assert [look["since"] for look in over] == [began, began, ended, ended]
    assert over[-1]["fired_at"] == fired
    run_outbox()
    subjects = [message.subject for message in mail.outbox]
    assert subjects == ["Alert: slow (checkout)", "Over: slow (checkout)"]
    assert cell.wake(cluster_id) is None
    entries = entries_of(tenant, made)
    assert [(entry.action, entry.actor_kind) for entry in entries] == [
        ("alert.create", "api_key"),
        ("alert.fire", "system"),
        ("alert.end", "system"),
    ]
    for entry, value in zip(entries[1:], (25, 3), strict=True):
        detail = {name: entry.detail[name] for name in ("subject", "value", "threshold")}
        assert detail == {"subject": "checkout", "value": value, "threshold": 10}
        assert entry.detail["since"].replace("+00:00", "Z") == began


def entries_of(tenant, alert):
    """Returns the audit entries of an alert, oldest first."""
    with organization_scope(tenant.id):
        entries = AuditEntry.objects.filter(target_id=alert["id"])
        return list(entries.order_by("created_at", "pk"))


def written(moment):
    """Returns a time of the REST interface as mails write it."""
    return f"{moment[:10]} {moment[11:19]} UTC"


def test_mails_name_the_group_and_since_when_it_is_behind(alert, lag, judged_after, cluster_id):
    made = alert(for_s=60)
    lag(checkout=25, other=3)
    mail.outbox.clear()
    began, fired = (judged_after(minutes, made)["evaluated_at"] for minutes in (1, 2))
    # Another group is furthest behind by the time that it is over.
    lag(checkout=2, other=3)
    _, ended = (judged_after(minutes, made)["evaluated_at"] for minutes in (3, 4))
    run_outbox()
    alarm, end = (message.body.split("\n") for message in mail.outbox)
    link = f"{config().web.public_url}/alerts?panel={made['id']}"
    with system_scope():
        name = Cluster.objects.get(pk=cluster_id).name
    assert alarm == [
        "Lag of a consumer group, in records: 25 records",
        "Consumer group: checkout",
        f"Cluster: {name}",
        "Threshold: 10 records, for 60 seconds",
        f"Above it since: {written(began)}",
        "",
        "You get another mail once it is back below the threshold.",
        "",
        link,
        "",
    ]
    assert end[:5] == [
        "Lag of a consumer group, in records: 3 records (other)",
        "Consumer group: checkout",
        *alarm[2:4],
        f"Above it: {written(began)} to {written(ended)}",
    ]
    assert fired < ended


def test_a_name_that_clients_chose_stays_on_its_line(alert, lag, judged_after):
    made = alert(for_s=0)
    lag(**{"a\nBcc: x@example.com\u202e" + "z" * 100: 25})
    mail.outbox.clear()
    judged_after(1, made)
    run_outbox()
    (message,) = mail.outbox
    legible = "a\ufffdBcc: x@example[.]com\ufffd"
    assert message.subject == f"Alert: slow ({(legible + 'z' * 100)[:60]}…)"
    assert f"\nConsumer group: {legible}{'z' * 100}\n" in message.body


def test_what_is_pending_is_over_without_a_mail(alert, lag, judged_after, tenant):
    made = alert()
    mail.outbox.clear()
    lag(checkout=25)
    assert judged_after(1, made)["state"] == "pending"
    lag(checkout=2)
    calm = judged_after(2, made)
    assert (calm["state"], calm["since"]) == ("ok", calm["evaluated_at"])
    lag(checkout=25)
    again = judged_after(3, made)
    assert (again["state"], again["since"]) == ("pending", again["evaluated_at"])
    run_outbox()
    assert mail.outbox == []
    assert [entry.action for entry in entries_of(tenant, made)] == ["alert.create"]


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
    assert (state_of(api, waits)["state"], state_of(api, waits)["value"]) == ("pending", "25")
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
        before = last - timedelta(days=1)
        make_day_parts([before.date(), last.date()])
        # One topic has the most, and another one grew the most.
        for minute, topic_id, quantity in [
            *((last, "t1", 600), (before, "t1", 350)),
            *((last, "t2", 400), (before, "t2", 20), (before, "t3", 30)),
        ]:
            ProvisionalMinute.objects.create(
                organization_id=tenant.id,
                cluster_id=cluster_id,
                topic_id=topic_id,
                meter="storage_byte_minutes",
                minute=minute,
                quantity=quantity,
                billed=True,
            )
        TopicName.objects.create(
            organization_id=tenant.id, cluster_id=cluster_id, topic_id="t1", name="payments"
        )
    mail.outbox.clear()
    assert services.evaluate_alerts() == 1
    named = ("state", "value", "subject")
    shown = [tuple(state_of(api, made)[name] for name in named) for made in (size, growth)]
    assert shown == [("firing", "1000", "payments"), ("ok", "600", "t2")]
    run_outbox()
    (message,) = mail.outbox
    assert message.subject == "Alert: slow (payments)"
    assert "\nTopic with most of it: payments\n" in message.body


def test_alerts_of_an_earlier_release_are_pending_and_firing(api, alert, tenant):
    """The migration's statements, on rows as an earlier release left them."""
    migration = import_module("console.alerts.migrations.0004_pending")
    calm, waits, fires = alert(name="calm"), alert(name="waits"), alert(name="fires")
    at = now() - MINUTE
    rows = Alert.objects.filter(organization_id=tenant.id)
    with organization_scope(tenant.id), connection.cursor() as cursor:
        rows.filter(pk=waits["id"]).update(back_since=at)
        rows.filter(pk=fires["id"]).update(state="firing", changed_at=at, subject="checkout")
        cursor.execute(migration.PENDING)
        cursor.execute(migration.FIRING)
    moment = at.isoformat().replace("+00:00", "Z")
    shown = [state_of(api, made) for made in (calm, waits, fires)]
    assert [look["state"] for look in shown] == ["ok", "pending", "firing"]
    assert [look["since"] for look in shown] == [calm["changed_at"], moment, moment]
    assert [look["back_since"] for look in shown] == [None, None, None]
    assert shown[2]["fired_subject"] == "checkout"


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
