"""Comparing with the log: what is compared, when, what is kept of it, and what tenants see."""

import json
from datetime import timedelta
from typing import Any
from urllib.parse import urlencode

import pytest
from django.db import IntegrityError, connection, transaction

from console.base.common.clock import now
from console.base.common.conf import config
from console.base.common.locks import lock_key
from console.base.common.tenancy import organization_scope, system_scope
from metering.choices import RunState
from metering.errors import DayNotOver, DayNotRolledUp, ReconcileBusy, RollupFailed, UnknownCell
from metering.events.keys import log_key
from metering.events.log import LoggedPartition, LogStatement, encode_statement
from metering.models import ClusterCoverage, QualityResult, ReconciledDay, Reconciliation
from metering.periods import DAY, MINUTE_MS, day_start, to_ms
from metering.services import reconciliation as service
from metering.services.reconciliation import reconcile_day, reconcile_recent_days
from metering.services.rollup import roll_up, roll_up_recent_days
from metering.services.run_folders import LOG, MANIFEST
from metering.tasks import roll_up_recent_days as nightly_task
from tests.metering.console.files import overwrite
from tests.metering.console.jobs import plain_job
from tests.metering.console.test_rollup import AFTER, TODAY, emit, home
from tests.metering.console.world import TOPIC_ID, make_hours_complete

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("clock", "home")]
__all__ = ["home"]
START_MS = to_ms(day_start(TODAY))
CL = "cl_a"


def state_log(store, sizes, *, cluster=CL, day=TODAY, gap="", gone=()):
    """Stores an agent's statement of a day: bytes by partition."""
    start_ms = to_ms(day_start(day))
    statement = LogStatement(
        cell=config().cell.id,
        cluster_id=cluster,
        since_ms=start_ms,
        until_ms=start_ms + to_ms(day_start(day) + DAY) - to_ms(day_start(day)),
        as_of_ms=to_ms(AFTER),
        gap=gap,
        partitions=tuple(
            LoggedPartition(topic_id=TOPIC_ID, partition=number, bytes=size)
            for number, size in sizes.items()
        ),
        gone_topics=tuple(gone),
    )
    assert store.put_new(log_key(config().cell.id, day, cluster), encode_statement(statement))


class PlainJob:
    """A job that compares nothing: it returns a fixed report, and keeps its arguments."""

    def __init__(self, *clusters, totals=None, checks=()):
        self.clusters, self.totals, self.checks = clusters, totals, checks
        self.manifest: dict[str, Any] = {}
        self.log: dict[str, Any] = {}
        self.days = []

    def __call__(self, reconciliation, folder, say):
        say("stage 1 of 1: all of it")
        self.days.append(reconciliation.day)
        self.manifest = json.loads(folder.read(MANIFEST))
        self.log = json.loads(folder.read(LOG))
        differing = sum(cluster["differing"] for cluster in self.clusters)
        return {
            "run_id": reconciliation.pk,
            "damaged_inputs": [],
            "day_totals": self.totals or {"ingress_bytes": "100"},
            "ingress": {
                "metered_bytes": "100",
                "clusters": list(self.clusters),
                "findings": [{"partition": 0}] * differing,
            },
            "egress": {"findings": []},
            "checks": [
                {
                    "name": "ingress_as_logged",
                    "passed": not differing,
                    "detail": f"{differing} partitions differ",
                },
                {"name": "egress_as_counted", "passed": True, "detail": "0 rows differ"},
                *self.checks,
            ],
        }


def figures(cluster=CL, metered=100, logged=100, unknown=0, differing=0):
    return {
        "cluster_id": cluster,
        "metered_bytes": str(metered),
        "bytes_least": str(logged),
        "bytes_most": str(logged),
        "unknown_bytes": str(unknown),
        "partitions": 1,
        "differing": differing,
    }


@pytest.fixture
def day(agent, store):
    """A day that is rolled up and stated."""
    emit(agent, [0])
    roll_up(day=TODAY, job=plain_job)
    state_log(store, {0: 100})


def shown_days():
    with system_scope():
        return {day.cluster_id: day for day in ReconciledDay.objects.all()}


def test_the_job_is_given_what_usage_and_log_say(agent, store, day):
    # Behind midnight a lane file may end, but not so far behind it.
    beside, beyond = emit(agent, [12]), emit(agent, [14])
    state_log(store, {}, cluster="cl_gap", gap="nobody knows")
    state_log(store, {1: 5}, cluster="cl_gone", gone=["f" * 32])
    make_hours_complete("org_a", "cl_silent", day_start(TODAY), day_start(TODAY) + DAY)
    job = PlainJob(figures())
    comparison = reconcile_day(day=TODAY, job=job)
    assert job.manifest["run_id"] == comparison.pk
    keys = {file["key"] for file in job.manifest["inputs"]}
    assert len(keys) == 2
    assert beside.key in keys
    assert beyond.key not in keys
    partitions = {
        (partition["cluster_id"], partition["partition"]): partition["bytes_most"]
        for partition in job.log["partitions"]
    }
    assert partitions == {(CL, 0): 100, ("cl_gone", 1): 5}
    assert (job.log["since_ms"], job.log["until_ms"]) == (START_MS, START_MS + 1440 * MINUTE_MS)
    assert sorted((e["cluster_id"], e["topic_id"] or "") for e in job.log["unknown"]) == [
        ("cl_gap", ""),
        ("cl_gone", "f" * 32),
        ("cl_silent", ""),
    ]


def test_equal_is_kept_and_shown(day):
    said: list[str] = []
    comparison = reconcile_day(day=TODAY, job=PlainJob(figures()), say=said.append)
    assert (comparison.state, comparison.passed, comparison.failed_checks) == (
        RunState.DONE,
        True,
        {},
    )
    shown = shown_days()[CL]
    assert (shown.agreement, shown.metered_bytes, shown.logged_bytes) == ("equal", 100, 100)
    assert shown.organization_id == "org_a"
    assert "usage is what the log holds, 100 bytes" in said[-1]
    names = set(QualityResult.objects.filter(kind="reconciliation").values_list("name", flat=True))
    assert names == {
        *("ingress_as_logged", "egress_as_counted", "log_is_stated", "inputs_are_sound"),
        "published_as_metered",
    }


def test_a_difference_is_an_alarm_and_a_result_and_mends_when_it_is_gone(day, caplog):
    job = PlainJob(figures(metered=90, differing=1))
    comparison = reconcile_day(day=TODAY, job=job)
    assert comparison.passed is False
    assert comparison.failed_checks == {"ingress_as_logged": "1 partitions differ"}
    (result,) = QualityResult.objects.filter(kind="reconciliation", passed=False)
    assert result.detail["findings"] == [{"partition": 0}]
    assert [record.levelname for record in caplog.records if "differs" in record.message] == [
        "ERROR"
    ]
    assert shown_days()[CL].agreement == "different"
    reconcile_day(day=TODAY, job=PlainJob(figures()))
    assert shown_days()[CL].agreement == "equal"
    assert Reconciliation.objects.count() == 2


def test_published_rows_that_are_not_those_of_the_files_are_reported(day):
    job = PlainJob(figures(), totals={"ingress_bytes": "101"})
    assert set(reconcile_day(day=TODAY, job=job).failed_checks) == {"published_as_metered"}


def test_a_cluster_whose_log_nobody_stated_is_reported_unless_it_is_gone(day, store):
    make_hours_complete("org_a", "cl_silent", day_start(TODAY), day_start(TODAY) + DAY)
    make_hours_complete("org_a", "cl_purged", day_start(TODAY), day_start(TODAY) + DAY)
    with system_scope():
        gone = ClusterCoverage.objects.filter(cluster_id="cl_purged")
        gone.update(closed_at_ms=START_MS + MINUTE_MS)
    comparison = reconcile_day(day=TODAY, job=PlainJob(figures()))
    assert comparison.failed_checks == {"log_is_stated": "not stated: cl_silent"}
    shown = shown_days()
    assert (shown["cl_silent"].agreement, shown["cl_purged"].reason) == (
        "partly_known",
        "it is gone",
    )


def test_a_statement_that_is_damaged_or_of_something_else_does_not_count(day, store):
    key = log_key(config().cell.id, TODAY, CL)
    for data in (b"{", store.get(key).replace(CL.encode(), b"cl_b")):
        overwrite(store, key, data)
        comparison = reconcile_day(day=TODAY, job=PlainJob(figures()))
        assert set(comparison.failed_checks) == {"log_is_stated"}
        assert shown_days()[CL].agreement == "partly_known"


def test_what_cannot_be_compared_is_refused(agent, clock):
    with pytest.raises(DayNotOver):
        reconcile_day(day=AFTER.date(), job=PlainJob())
    with pytest.raises(UnknownCell):
        reconcile_day(day=TODAY, cell="elsewhere", job=PlainJob())
    with pytest.raises(DayNotRolledUp):
        reconcile_day(day=TODAY, job=PlainJob())


def test_a_job_that_fails_or_is_interrupted_says_so_and_can_be_repeated(day):
    def fails(*given):
        raise RollupFailed("the coffee is cold")

    def interrupted(*given):
        raise KeyboardInterrupt

    for job, error, state in [
        (fails, RollupFailed, RunState.FAILED),
        (interrupted, KeyboardInterrupt, RunState.INTERRUPTED),
    ]:
        with pytest.raises(error):
            reconcile_day(day=TODAY, job=job)
        assert Reconciliation.objects.get(state=state).passed is None
    assert reconcile_day(day=TODAY, job=PlainJob(figures())).passed


def test_a_finished_comparison_never_changes(day):
    comparison = reconcile_day(day=TODAY, job=PlainJob(figures()))
    with pytest.raises(IntegrityError, match="only ever added"), transaction.atomic():
        Reconciliation.objects.filter(pk=comparison.pk).update(passed=False)


def test_nights_compare_what_is_rolled_up_once_and_again_when_it_has_grown(agent, store, clock):
    emit(agent, [0])
    job = PlainJob(figures())
    clock.now = AFTER
    roll_up(day=TODAY, job=plain_job)
    assert reconcile_recent_days(job=job) == []
    state_log(store, {0: 100})
    clock.now = AFTER.replace(hour=0, minute=29)
    assert reconcile_recent_days(job=job) == []
    clock.now = AFTER
    assert reconcile_recent_days(job=job) == [TODAY]
    assert reconcile_recent_days(job=job) == []
    clock.now += DAY
    assert reconcile_recent_days(job=job) == []
    emit(agent.twin("agent-2"), [0])
    roll_up_recent_days(job=plain_job)
    assert reconcile_recent_days(job=job) == [TODAY]
    clock.now += timedelta(days=10)
    emit(agent.twin("agent-3"), [0])
    assert reconcile_recent_days(job=job) == []


def test_a_day_that_fails_is_tried_again_in_the_next_night(day, clock):
    def fails(*given):
        raise RollupFailed

    assert reconcile_recent_days(job=fails) == []
    assert reconcile_recent_days(job=PlainJob(figures())) == []
    clock.now += DAY
    assert reconcile_recent_days(job=PlainJob(figures())) == [TODAY]


def test_the_nightly_task_compares_what_it_rolled_up(agent, store, monkeypatch):
    done = []
    monkeypatch.setattr("metering.services.rollup.roll_up_recent_days", lambda: done.append("up"))
    monkeypatch.setattr(service, "reconcile_recent_days", lambda: done.append("compared"))
    monkeypatch.setattr("metering.services.pruning.prune_usage", lambda: done.append("pruned"))
    nightly_task()
    assert done == ["up", "compared", "pruned"]


@pytest.fixture
def seen(tenant, other_tenant, day):
    """Two clusters of one tenant on two days, and one of another."""
    for owner, cluster, when in [
        (tenant.id, "cl_aaaaaaaaaaaaaaaaaaaa", TODAY),
        (tenant.id, "cl_bbbbbbbbbbbbbbbbbbbb", TODAY),
        (tenant.id, "cl_aaaaaaaaaaaaaaaaaaaa", TODAY - DAY),
        (other_tenant.id, "cl_cccccccccccccccccccc", TODAY),
    ]:
        comparison = Reconciliation.objects.create(
            cell=config().cell.id, day=when, inputs_sha256="", created_at=now()
        )
        with organization_scope(owner):
            ReconciledDay.objects.create(
                organization_id=owner,
                cluster_id=cluster,
                day=when,
                reconciliation=comparison,
                agreement="equal",
                metered_bytes=2**70,
                logged_bytes=2**70,
                unknown_bytes=0,
                differing=0,
            )


def test_tenants_see_their_own_days_newest_first(api, tenant, seen):
    def page(**query):
        response = api().get(f"/usage/reconciliations?{urlencode(query)}")
        assert response.status_code == 200, response.content
        return response.json()

    def days(**query):
        return [(item["day"], item["cluster_id"][3]) for item in page(**query)["items"]]

    today, yesterday = str(TODAY), str(TODAY - DAY)
    assert [day for day, _ in days()] == [today, today, yesterday]
    assert days(cluster_id="cl_aaaaaaaaaaaaaaaaaaaa") == [(today, "a"), (yesterday, "a")]
    assert days(to=today) == [(yesterday, "a")]
    assert {cluster for _, cluster in days(**{"from": today})} == {"a", "b"}
    item = page()["items"][0]
    assert item["metered_bytes"] == item["logged_bytes"] == str(2**70)
    assert item["differing_partitions"] == 0
    first = page(limit=2)
    assert [day for day, _ in days(limit=2, cursor=first["next_cursor"])] == [yesterday]
    assert api().get("/usage/reconciliations?from=soon").status_code == 422


@pytest.mark.django_db(transaction=True)
def test_one_comparison_of_a_day_at_a_time(agent, store):
    emit(agent, [0])
    roll_up(day=TODAY, job=plain_job)
    state_log(store, {0: 100})
    connection.ensure_connection()
    other = connection.copy()
    key = lock_key(service.LOCK, f"{config().cell.id}/{TODAY}")
    with other.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_lock(%s)", [key])
        with pytest.raises(ReconcileBusy, match="PostgreSQL's process"):
            reconcile_day(day=TODAY, job=PlainJob(figures()))
        cursor.execute("SELECT pg_advisory_unlock(%s)", [key])
    other.close()
    assert reconcile_day(day=TODAY, job=PlainJob(figures())).passed
