"""Usage of a real broker against its real log, through agent, ingest, roll-up and Spark."""

import dataclasses
from datetime import UTC, datetime, timedelta
from io import StringIO

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic
from django.core.management import CommandError, call_command

from brokers.locations import local_path
from console.base.common.conf import config
from console.base.common.tenancy import organization_scope
from metering.agent.source import CellSource
from metering.events.keys import manifest_key
from metering.events.records import BLOCKS_VERSION, FILES_VERSION, decode_usage
from metering.management.commands import reconcile as command
from metering.models import QualityResult, ReconciledDay, Reconciliation
from metering.periods import DAY
from metering.services import reconciliation
from metering.services.rollup import roll_up
from spark_usage.jars import POM as S3A_POM
from tests.brokers.logscan import LogScan
from tests.metering.agent.processes import CELL, CLUSTER, make_broker, make_spec
from tests.metering.console.jobs import plain_job
from tests.metering.console.meter import Meter
from tests.peer.jars import jar_folder
from tests.spark.jobs import reconcile_in

pytestmark = pytest.mark.django_db
TOPICS = ("orders", "payments")


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "cell").mkdir()
    return tmp_path / "cell"


@pytest.fixture
def now():
    """The real day: a broker reads the real clock. Not within reach of its end."""
    began = datetime.now(UTC)
    if began.hour == 23 and began.minute >= 50:
        began -= timedelta(minutes=30)
    return began


def produce(broker, count):
    producer = Producer({"bootstrap.servers": broker.bootstrap, "acks": "all", "linger.ms": 1})
    for number in range(count):
        value = f"record {number}".encode() * (1 + number % 7)
        producer.produce(TOPICS[number % 2], value, partition=number % 3)
        if number % 10 == 0:
            producer.flush(30)
    assert producer.flush(30) == 0


@pytest.fixture
def location(folder):
    """Where usage files lie."""
    return f"file://{folder}/usage"


@pytest.fixture
def metered(folder, location, now, settings, clock):
    """A day of a broker that was killed twice, metered; the night after it.

    Its agent is upgraded to version 2 of usage rows, goes back, and is upgraded again.
    """
    source = CellSource(
        metadata=folder / "metadata.sqlite", dfs=folder / "dfs", bucket=folder / "bucket"
    )
    meter = Meter(source, folder / "progress", location, cell=CELL)
    with make_broker(folder) as broker:
        make_spec(folder)
        admin = AdminClient({"bootstrap.servers": broker.bootstrap})
        for made in admin.create_topics([NewTopic(name, 3) for name in TOPICS]).values():
            made.result(30)
        produce(broker, 300)
        meter.start(BLOCKS_VERSION)
        meter.run_pass(now)
        produce(broker, 200)
        broker.crash()
        broker.restart()
        produce(broker, 300)
        meter.start(FILES_VERSION)
        meter.run_pass(now + timedelta(minutes=1))
        produce(broker, 100)
        broker.crash()
        broker.restart()
        produce(broker, 100)
        # The lane that ended is summed up.
        meter.run_pass(now + timedelta(minutes=2))
        meter.start(BLOCKS_VERSION)
        meter.run_pass(now + timedelta(minutes=3))
        produce(broker, 100)
        broker.stop()
        meter.start(FILES_VERSION)
    night = datetime(now.year, now.month, now.day, 0, 20, tzinfo=UTC) + DAY
    meter.run_pass(night)
    meter.run_pass(night + timedelta(minutes=5))
    usage = dataclasses.replace(
        config().usage,
        location=location,
        rollups=str(folder / "rollups"),
        spark_master="local[2]",
        spark_jars=str(jar_folder(S3A_POM)),
    )
    settings.FRESHET = dataclasses.replace(config(), usage=usage)
    clock.now = night + timedelta(minutes=15)
    return meter


def in_log(folder):
    """Bytes of all record batches, by a walk over what lies on storage."""
    scan = LogScan(folder / "dfs", folder / "bucket", folder / "metadata.sqlite", CLUSTER)
    places = [(topic, partition) for topic in TOPICS for partition in range(3)]
    return sum(batch.size for place in places for batch in scan.batches(*place))


@pytest.fixture
def in_session(spark, monkeypatch):
    """The command's comparison runs in the tests' session of Spark."""
    job = reconcile_in(spark)
    monkeypatch.setattr(
        command, "reconcile_day", lambda **options: reconciliation.reconcile_day(job=job, **options)
    )


def reconcile(day, clock):
    """The command; what it said, and what it came to."""
    out = StringIO()
    clock.now += timedelta(minutes=1)
    try:
        call_command("reconcile", "--day", str(day), stdout=out, no_color=True)
    except CommandError as error:
        out.write(f"ended with: {error}")
    newest = Reconciliation.objects.order_by("-created_at").first()
    with organization_scope("org_1"):
        return out.getvalue(), newest, ReconciledDay.objects.get(cluster_id=CLUSTER)


@pytest.mark.full("stores")
class TestInABucket:
    """Usage files in S3: written by the agent, ingested, and read by both jobs of Spark, each in a
    process of its own."""

    @pytest.fixture
    def location(self, s3_server):
        return s3_server.make_bucket().replace("?", "/cell/usage?")

    @pytest.mark.timeout(600)
    def test_usage_is_the_log(self, metered, folder, now, clock):
        day = now.date()
        assert roll_up(day=day).state == "published"
        said, comparison, shown = reconcile(day, clock)
        assert comparison.failed_checks == {}, said
        assert shown.agreement == "equal"
        assert shown.metered_bytes == shown.logged_bytes >= in_log(folder) > 0


@pytest.mark.timeout(600)
@pytest.mark.usefixtures("in_session")
def test_usage_is_the_log_and_a_doubled_file_is_reported(metered, folder, now, clock, caplog):
    day = now.date()
    assert roll_up(day=day, job=plain_job).state == "published"

    said, comparison, shown = reconcile(day, clock)
    assert comparison.failed_checks == {}, said
    assert "usage is what the log holds" in said
    assert shown.agreement == "equal"
    # Beside the tenant's topics there are the cluster's own.
    assert shown.metered_bytes == shown.logged_bytes >= in_log(folder) > 0
    assert "usage.differs_from_log" not in caplog.text

    first = next(m for m in metered.manifests() if BLOCKS_VERSION in versions_of(metered, m))
    summed = next(m for m in metered.manifests() if FILES_VERSION in versions_of(metered, m))

    # The same rows count once; the same bytes as other blocks, or as another file: no deduplication
    # can see it.
    def renumbered(rows):
        return [
            row
            | (
                {"lane_file": row["lane_file"] + 10**6}
                if row["block"] is None
                else {"block": row["block"] + 10**6}
            )
            for row in rows
            if row["meter"] == "ingress_bytes"
        ]

    metered.write_again(first, lambda rows: rows)
    metered.write_again(first, renumbered)
    metered.write_again(summed, renumbered)
    said, comparison, shown = reconcile(day, clock)
    assert comparison.report["duplicates"] == first.rows
    doubled = {finding["kind"] for finding in comparison.report["ingress"]["findings"]}
    assert (comparison.passed, shown.agreement, doubled) == (False, "different", {"above_log"})
    assert shown.metered_bytes > shown.logged_bytes
    assert "usage.differs_from_log" in caplog.text
    assert QualityResult.objects.filter(
        kind="reconciliation", name="ingress_as_logged", passed=False
    ).exists()
    assert "days that differ from the log: 1" in status()


def versions_of(meter, manifest):
    """The versions of a file's rows of lanes."""
    rows = decode_usage(meter.store.get(manifest.key)).to_pylist()
    return {row["schema_version"] for row in rows if row["lane_file"] is not None}


def status():
    out = StringIO()
    call_command("usage_status", stdout=out, no_color=True)
    return out.getvalue()


@pytest.mark.timeout(600)
@pytest.mark.usefixtures("in_session")
def test_a_usage_file_that_is_lost_for_good_is_reported(metered, now, clock):
    lost = next(
        manifest
        for manifest in metered.manifests()
        if "ingress_bytes" in decode_usage(metered.store.get(manifest.key))["meter"].to_pylist()
    )
    root = local_path(metered.location)
    assert root is not None
    for key in (lost.key, manifest_key(lost.key)):
        (root / key).unlink()
    assert roll_up(day=now.date(), job=plain_job).state == "published"
    said, comparison, shown = reconcile(now.date(), clock)
    assert not comparison.passed
    assert shown.agreement == "different"
    assert shown.metered_bytes < shown.logged_bytes
    kinds = {finding["kind"] for finding in comparison.report["ingress"]["findings"]}
    assert kinds & {"below_log", "not_metered"} == kinds != set()
    assert "usage and log differ" in said
