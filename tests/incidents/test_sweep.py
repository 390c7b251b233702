"""The sweep against PostgreSQL and a cell: what it opens, who sees it, who gets a mail."""

import contextlib
import dataclasses
from datetime import timedelta

import pytest
from django.core import mail
from django.db import IntegrityError, ProgrammingError, connection, transaction

from billing.choices import MissingKind
from billing.periods import last_closed_month
from billing.services.missing import forget_missing, note_missing
from brokers.errors import InvalidError, MetadataError, UnavailableError
from brokers.etcd import Etcd
from brokers.locations import EtcdLocation, metadata_location
from brokers.metadata import CellStore
from console.base.accounts.models import User
from console.base.common.clock import now, unix_ms
from console.base.common.conf import config
from console.base.common.models import OutboxEntry
from console.base.common.tenancy import organization_scope, system_scope
from console.incidents import services
from console.incidents.models import Incident, RestartCount
from metering.models import JudgedHour, Reconciliation, TotalsCheck
from provisioning.cell.notes import CellHealth, put_health
from provisioning.cells import cell_store
from provisioning.models import Operation
from tests.console.cases import assert_problem
from tests.console.outbox import run_outbox
from tests.etcd import running_etcd
from tests.provisioning.control.world import failing, put_status

MINUTE = timedelta(minutes=1)


def listed_incidents(api, **query):
    return api().get("/incidents", query=query).json()["items"]


def sweep_restarts(cluster_id, *counts, later, start=0):
    """Sweeps once a minute; each sweep reads the next of `counts` as the cluster's restarts."""
    for place, count in enumerate(counts, start=start):
        put_status(cluster_id, "running", restarts=count)
        later(place * MINUTE)
        services.sweep_incidents()


def test_nothing_is_wrong(api, cluster_id):
    assert services.sweep_incidents() == 0
    assert listed_incidents(api) == []


def test_brokers_that_crash_again_and_again(api, other_tenant, cluster_id, later):
    sweep_restarts(cluster_id, 1, 2, 3, later=later)
    (incident,) = listed_incidents(api)
    assert (incident["kind"], incident["state"]) == ("brokers_crashing", "open")
    assert incident["cluster_id"] == cluster_id
    assert [update["text"] for update in incident["updates"]]
    # A further look changes nothing, nor does another organization see it.
    assert services.sweep_incidents() == 0
    assert api(other_tenant.key).get("/incidents").json()["items"] == []
    foreign = api(other_tenant.key).get(f"/incidents/{incident['id']}")
    assert_problem(foreign, 404, "not_found")
    later(20 * MINUTE)
    services.sweep_incidents()
    (over,) = listed_incidents(api, state="closed", cluster_id=cluster_id)
    assert over["id"] == incident["id"]
    assert over["closed_at"]
    assert listed_incidents(api, state="open") == []


def test_a_broker_that_restarted_once_is_none(api, cluster_id, later):
    sweep_restarts(cluster_id, 1, 1, 1, later=later)
    assert listed_incidents(api) == []


def test_restarts_of_a_sleeping_cluster_are_forgotten(tenant, cluster_id, later):
    sweep_restarts(cluster_id, 1, 2, later=later)
    with organization_scope(tenant.id):
        assert RestartCount.objects.get().streak == 2
    put_status(cluster_id, "asleep")
    services.sweep_incidents()
    with organization_scope(tenant.id):
        assert not RestartCount.objects.exists()


def test_the_incident_of_a_failed_cluster_says_why(api, cluster_id):
    put_status(cluster_id, "failed", message="its settings were refused")
    services.sweep_incidents()
    (incident,) = listed_incidents(api)
    assert incident["updates"][0]["text"] == "its settings were refused"
    put_status(cluster_id, "running")
    services.sweep_incidents()
    (over,) = listed_incidents(api)
    assert [update["text"] for update in over["updates"]] == [
        "its settings were refused",
        "It is over.",
    ]


def test_an_incident_that_postgresql_refuses_stops_no_other(api, cluster_id, make_cluster):
    odd = make_cluster()
    put_status(odd, "failed", message="a NUL: \0")
    put_status(cluster_id, "failed", message="its settings were refused")
    assert services.sweep_incidents() == 1
    assert [incident["cluster_id"] for incident in listed_incidents(api)] == [cluster_id]


def test_a_cell_that_does_not_answer_concerns_everybody(api, other_tenant, cluster_id, later):
    put_status(cluster_id, "failed", message="refused")
    services.sweep_incidents()
    with failing("statuses", *[UnavailableError("away")] * 2, owner=CellStore):
        services.sweep_incidents()
        # It may have been a moment only, so it is suspected and not listed.
        assert {incident["kind"] for incident in listed_incidents(api)} == {"brokers_crashing"}
        later(MINUTE)
        services.sweep_incidents()
    assert {(incident["kind"], incident["state"]) for incident in listed_incidents(api)} == {
        ("brokers_crashing", "open"),
        ("cell_unreachable", "open"),
    }
    (seen,) = api(other_tenant.key).get("/incidents").json()["items"]
    assert (seen["kind"], seen["cluster_id"]) == ("cell_unreachable", None)
    assert api(other_tenant.key).get(f"/incidents/{seen['id']}").status_code == 200
    services.sweep_incidents()
    assert {
        incident["state"]
        for incident in listed_incidents(api)
        if incident["kind"] == "cell_unreachable"
    } == {"closed"}


def test_a_moments_failure_is_shown_to_nobody(api, cluster_id):
    with failing("statuses", UnavailableError("away"), owner=CellStore):
        services.sweep_incidents()
    services.sweep_incidents()
    assert listed_incidents(api) == []
    with system_scope():
        assert not Incident.objects.exists()


def test_an_operation_that_does_not_end(api, tenant, cluster_id, later):
    with organization_scope(tenant.id):
        Operation.objects.create(
            organization_id=tenant.id, cluster_id=cluster_id, type="wake_cluster", generation=1
        )
    services.sweep_incidents()
    assert listed_incidents(api) == []
    later(16 * MINUTE)
    services.sweep_incidents()
    (incident,) = listed_incidents(api)
    assert incident["kind"] == "operation_stuck"
    with organization_scope(tenant.id):
        Operation.objects.filter(type="wake_cluster").update(state="succeeded")
    services.sweep_incidents()
    assert listed_incidents(api, state="open") == []


def test_tasks_that_no_worker_takes(api, tenant, later):
    with organization_scope(tenant.id):
        OutboxEntry.objects.create(
            organization_id=tenant.id, task="x.y", created_at=now() - 10 * MINUTE
        )
    services.sweep_incidents()
    later(MINUTE)
    services.sweep_incidents()
    (incident,) = [
        candidate for candidate in listed_incidents(api) if candidate["kind"] == "tasks_delayed"
    ]
    assert incident["cluster_id"] is None


def test_hours_whose_usage_is_missing(api, tenant, cluster_id):
    with organization_scope(tenant.id):
        for hours in (1, 5, 6):
            JudgedHour.objects.create(
                organization_id=tenant.id,
                cluster_id=cluster_id,
                hour=now().replace(minute=0, second=0, microsecond=0) - timedelta(hours=hours),
                complete=False,
                reason="no file",
            )
    services.sweep_incidents()
    (incident,) = listed_incidents(api)
    assert (incident["kind"], incident["cluster_id"]) == ("usage_incomplete", cluster_id)


def report_size(file_bytes, in_use_bytes=1, quota_bytes=100):
    """Writes a keeper's report of the size of the cell's etcd."""
    health = CellHealth(
        unix_ms(now()),
        etcd_file_bytes=file_bytes,
        etcd_in_use_bytes=in_use_bytes,
        etcd_quota_bytes=quota_bytes,
    )
    put_health(cell_store(), health)


def test_a_damaged_batch(api, other_tenant, tenant, cluster_id, report_damage):
    run_outbox()
    mail.outbox.clear()
    put_status(cluster_id, "running")
    report_damage((cluster_id, "orders", 3, 94))
    services.sweep_incidents()
    (incident,) = listed_incidents(api)
    assert (incident["kind"], incident["state"]) == ("damaged_batch", "open")
    assert incident["cluster_id"] == cluster_id
    (update,) = incident["updates"]
    for part in ("orders", "partition 3", "offset 94"):
        assert part in update["text"]
    assert api(other_tenant.key).get("/incidents").json()["items"] == []
    assert services.sweep_incidents() == 0
    # Another broker has not been asked yet.
    report_damage(unknown=(cluster_id,))
    assert services.sweep_incidents() == 0
    # The log begins behind it by now.
    report_damage()
    services.sweep_incidents()
    assert [incident["state"] for incident in listed_incidents(api)] == ["closed"]
    run_outbox()
    assert [message.to for message in mail.outbox] == [[tenant.owner.email]] * 2


@pytest.fixture
def cell_at(settings):
    """Gives the test a cell whose metadata store is at a location."""

    def put_cell(location):
        cell = dataclasses.replace(config().cell, metadata=location)
        settings.FRESHET = dataclasses.replace(config(), cell=cell)

    return put_cell


def test_a_metadata_store_that_is_nearly_full(api, tenant, staff, cell_at, tmp_path):
    cell_at(str(tmp_path / "metadata.sqlite"))
    run_outbox()
    mail.outbox.clear()
    report_size(69)
    services.sweep_incidents()
    assert listed_incidents(api) == []
    report_size(70)
    services.sweep_incidents()
    (incident,) = listed_incidents(api)
    assert (incident["kind"], incident["state"]) == ("metadata_full", "open")
    assert "defragmentation" in incident["updates"][0]["text"]
    report_size(71)
    assert services.sweep_incidents() == 0
    # A size that is not known any more changes nothing.
    report_size(0, 0, 0)
    assert services.sweep_incidents() == 0
    report_size(69)
    services.sweep_incidents()
    assert [incident["state"] for incident in listed_incidents(api)] == ["closed"]
    run_outbox()
    assert [message.to for message in mail.outbox] == [[staff.email]] * 2


@pytest.mark.full("stores")
def test_a_metadata_store_that_is_full(api, tenant, cell_at, tmp_path):
    quota_bytes = 1 << 20
    with running_etcd(tmp_path, quota_bytes=quota_bytes) as server:
        cell_at(server.location())
        services.sweep_incidents()
        assert listed_incidents(api) == []
        location = metadata_location(config().cell.metadata)
        assert isinstance(location, EtcdLocation)
        etcd = Etcd(location)
        while not etcd.status().out_of_space:
            with contextlib.suppress(InvalidError):
                etcd.write({"a": bytes(quota_bytes // 8)})
        with pytest.raises(MetadataError):
            report_size(99)
        services.sweep_incidents()
        (incident,) = listed_incidents(api)
        assert (incident["kind"], incident["state"]) == ("metadata_full", "open")
        assert "NOSPACE" in incident["updates"][0]["text"]
        entry = etcd.get("a")
        assert entry is not None
        etcd.call("kv/compaction", {"revision": entry.revision, "physical": True})
        etcd.call("maintenance/defragment", {})
        (alarm,) = etcd.call("maintenance/alarm", {})["alarms"]
        etcd.call("maintenance/alarm", {"action": "DEACTIVATE", **alarm})
        report_size(30)
        services.sweep_incidents()
        assert [incident["state"] for incident in listed_incidents(api)] == ["closed"]


@pytest.fixture
def staff(db):
    """Somebody who runs the service."""
    return User.objects.create(email="staff@freshet.example", is_staff=True)


def test_who_manages_gets_a_mail_of_the_beginning_and_the_end(tenant, cluster_id, staff):
    run_outbox()
    mail.outbox.clear()
    put_status(cluster_id, "failed", message="refused")
    services.sweep_incidents()
    run_outbox()
    services.sweep_incidents()
    run_outbox()
    put_status(cluster_id, "running")
    services.sweep_incidents()
    run_outbox()
    first, last = [message for message in mail.outbox if "incidents" in message.body]
    assert first.to == last.to == [tenant.owner.email]
    assert "refused" in first.body
    assert last.subject.startswith("Over: ")
    assert first.extra_headers["Message-ID"] != last.extra_headers["Message-ID"]


def test_staff_gets_a_mail_of_what_concerns_the_service(cluster_id, staff, later):
    run_outbox()
    mail.outbox.clear()
    with failing("statuses", *[UnavailableError("away")] * 2, owner=CellStore):
        services.sweep_incidents()
        later(MINUTE)
        services.sweep_incidents()
    run_outbox()
    (message,) = mail.outbox
    assert message.to == [staff.email]


def test_staff_alone_learn_of_missing_invoices(api, tenant, staff, later):
    run_outbox()
    mail.outbox.clear()
    month = last_closed_month(now())
    note_missing(month, MissingKind.IMPOSSIBLE, {tenant.id: "no rate for FR"})
    services.sweep_incidents()
    run_outbox()
    assert mail.outbox == []
    later(16 * MINUTE)
    services.sweep_incidents()
    run_outbox()
    with system_scope():
        incident = Incident.objects.get()
    assert (incident.kind, incident.subject) == ("invoices_missing", f"{month:%Y-%m}")
    assert (incident.organization_id, incident.state) == (None, "open")
    assert listed_incidents(api) == []
    assert_problem(api().get(f"/incidents/{incident.pk}"), 404, "not_found")
    with system_scope():
        forget_missing(month, [tenant.id])
    services.sweep_incidents()
    run_outbox()
    first, last = mail.outbox
    assert first.to == last.to == [staff.email]
    assert f"1 organization has no invoice of {month:%Y-%m}" in first.body
    assert first.body.rstrip().endswith("/staff")
    assert tenant.id not in first.body
    assert last.subject.startswith("Over: ")


def test_staff_alone_learn_of_usage_that_differs(api, tenant, staff, later):
    run_outbox()
    mail.outbox.clear()
    check = TotalsCheck.objects.create(cell="local", checked_at=now(), differing=2)
    compared = Reconciliation.objects.create(
        cell="local", day=now().date(), state="done", passed=False, inputs_sha256="0" * 64
    )
    services.sweep_incidents()
    run_outbox()
    with system_scope():
        incident = Incident.objects.get()
    assert (incident.kind, incident.organization_id) == ("usage_differs", None)
    assert listed_incidents(api) == []
    (message,) = mail.outbox
    assert message.to == [staff.email]
    assert "Running totals are not what their rows sum to." in message.body
    assert f"{compared.day}" in message.body
    # The totals are made anew, and the day is compared again: the newest of each decides.
    later(16 * MINUTE)
    TotalsCheck.objects.create(cell=check.cell, checked_at=now(), differing=0)
    services.sweep_incidents()
    with system_scope():
        assert Incident.objects.get().state == "open"
    Reconciliation.objects.create(
        cell="local",
        day=compared.day,
        state="done",
        passed=True,
        inputs_sha256="1" * 64,
        created_at=now(),
    )
    services.sweep_incidents()
    with system_scope():
        assert Incident.objects.get().state == "closed"


def test_two_of_one_kind_and_subject_are_never_open(tenant):
    fields = {"kind": "cell_unreachable", "subject": "local", "state": "open", "title": "x"}
    with system_scope():
        Incident.objects.create(**fields)
        with pytest.raises(IntegrityError), transaction.atomic():
            Incident.objects.create(**fields)


def test_an_incident_of_the_service_is_written_by_the_service_alone(tenant):
    refused = pytest.raises(ProgrammingError, match="row-level security")
    with organization_scope(tenant.id), refused, transaction.atomic():
        Incident.objects.create(kind="x", subject="y", state="open", title="z")
    with system_scope():
        made = Incident.objects.create(kind="x", subject="y", state="open", title="z")
    with organization_scope(tenant.id):
        assert Incident.objects.filter(pk=made.pk).exists()
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM incidents_incident")
        assert cursor.fetchone() == (0,)
