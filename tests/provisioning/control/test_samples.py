"""Samples of clusters in PostgreSQL: which one is the newest, their series, and what is removed."""

import time
from datetime import UTC, datetime, timedelta

import orjson
import pytest
from django.db import DatabaseError, connection, transaction
from django.utils import timezone

from brokers.objects import FolderObjects
from console.base.common.clock import unix_ms
from console.base.common.tenancy import organization_scope, system_scope
from provisioning.cell.sample_files import (
    PREFIX,
    encode_file,
    file_key,
    hour_prefix,
    sample_line,
)
from provisioning.choices import Intent
from provisioning.clusters.services import sample_history, sample_ingest
from provisioning.clusters.services.sample_ingest import ingest_samples
from provisioning.clusters.services.samples import newest_sample, remove_samples
from provisioning.models import Cluster, ClusterSample, SampleFile, SampleHour, SampleMinute
from tests.console.factories import make_tenant

MINUTE_MS, HOUR_MS = 60_000, 3_600_000
NOON_MS = 1_900_000_800_000 - 1_900_000_800_000 % HOUR_MS
NOON = datetime.fromtimestamp(NOON_MS / 1000, UTC)


def group(name, *partitions):
    return {
        "group": name,
        "partitions": [
            {"topic": topic, "partition": number, "committed": 1, "end": 9, "lag": lag,
             "since_ms": since_ms}
            for number, (topic, lag, since_ms) in enumerate(partitions)
        ],
    }  # fmt: skip


@pytest.fixture(autouse=True)
def at_noon(monkeypatch, db):
    """Sets the time, and makes the parts of tables for it."""

    def set_time(moment):
        monkeypatch.setattr(timezone, "now", lambda: moment)
        sample_history.keep_parts()

    set_time(NOON)
    return set_time


@pytest.fixture
def objects(tmp_path, monkeypatch):
    folder = FolderObjects(tmp_path / "bucket")
    monkeypatch.setattr(sample_history, "samples_store", lambda: folder)
    return folder


@pytest.fixture
def write(objects):
    """Writes a file, as a keeper of a term does at a moment."""

    def write_file(*samples, at_ms=NOON_MS, term=1, same=None):
        lines = [
            sample_line(name, taken, orjson.dumps(content)) for name, taken, content in samples
        ]
        data = encode_file(lines, same or {}, emitted_at_ms=at_ms, term=term, whole=False)
        key = file_key(at_ms, term)
        assert objects.put_new(key, data)
        return key

    return write_file


@pytest.fixture
def clusters(tenant, api, make_cluster):
    return sorted(make_cluster() for _ in range(2))


def newest(tenant, cluster_id):
    with organization_scope(tenant.id):
        return newest_sample(organization_id=tenant.id, cluster_id=cluster_id)


def minutes(cluster_id):
    with system_scope():
        rows = SampleMinute.objects.filter(cluster_id=cluster_id).order_by("at")
        return {unix_ms(row.at) - NOON_MS: row.series for row in rows}


def test_the_newest_sample_of_a_cluster_is_kept(tenant, clusters, write, objects):
    first, second = clusters
    older = {"groups": [group("a", ("t", 5, 1))], "topics": {}}
    newer = {"groups": [group("a", ("t", 7, 1))], "topics": {}}
    write((first, NOON_MS, older), (second, NOON_MS, older))
    write((first, NOON_MS + 5, newer), at_ms=NOON_MS + 10)
    assert ingest_samples(objects=objects).samples == 3
    assert newest(tenant, first).content == newer
    assert newest(tenant, first).taken_at_ms == NOON_MS + 5
    assert newest(tenant, second).content == older
    # Nothing is taken in twice.
    assert ingest_samples(objects=objects).files == 0


def test_an_older_sample_replaces_no_newer_one(tenant, clusters, write, objects):
    """As that of a keeper that was stopped in the middle of a write, and goes on."""
    cluster, _ = clusters
    of = {name: {"groups": [group(name)], "topics": {}} for name in "abc"}
    write((cluster, NOON_MS, of["b"]), at_ms=NOON_MS, term=2)
    ingest_samples(objects=objects)
    write((cluster, NOON_MS + 60, of["a"]), at_ms=NOON_MS + 60, term=1)
    assert ingest_samples(objects=objects).samples == 0
    assert newest(tenant, cluster).content == of["b"]
    # Of the same keeper: a file that was found late.
    write((cluster, NOON_MS - 9, of["a"]), at_ms=NOON_MS - 9, term=2)
    assert ingest_samples(objects=objects).files == 1
    assert newest(tenant, cluster).content == of["b"]
    # A later keeper's clock may be behind.
    write((cluster, NOON_MS - 500, of["c"]), at_ms=NOON_MS + 70, term=3)
    ingest_samples(objects=objects)
    assert newest(tenant, cluster).content == of["c"]


def test_a_cluster_that_did_not_change_was_looked_at(tenant, clusters, write, objects):
    first, second = clusters
    content = {"groups": [group("a", ("t", 5, NOON_MS - 10_000))], "topics": {}}
    write((first, NOON_MS, content))
    write(at_ms=NOON_MS + MINUTE_MS, same={first: NOON_MS + MINUTE_MS, second: NOON_MS})
    # Of another keeper it is not known which sample it equals.
    write(at_ms=NOON_MS + 2 * MINUTE_MS, term=9, same={first: NOON_MS + 2 * MINUTE_MS})
    ingest_samples(objects=objects)
    assert newest(tenant, first).taken_at_ms == NOON_MS + MINUTE_MS
    assert newest(tenant, second) is None
    lags = {at: series["groups"] for at, series in minutes(first).items()}
    assert lags == {0: {"a": {"t": [5, 10.0]}}, MINUTE_MS: {"a": {"t": [5, 70.0]}}}


def test_rates_are_counted_between_minutes(clusters, write, objects):
    cluster, _ = clusters
    counts = [[1000, 0, 10], [7000, 600, 70], [7000, 600, 70], [100, 60, 1], [700, 60, 1]]
    for number, of_topic in enumerate(counts):
        at_ms = NOON_MS + number * MINUTE_MS
        content = {"groups": [], "topics": {"t": of_topic}, "connections": number}
        write((cluster, at_ms, content), at_ms=at_ms)
    # A second sample of a minute changes no row.
    write((cluster, at_ms + 9, content | {"connections": 99}), at_ms=at_ms + 9)
    ingest_samples(objects=objects)
    rows = minutes(cluster)
    assert [series["connections"] for series in rows.values()] == [0, 1, 2, 3, 4]
    assert [series["topics"].get("t") for series in rows.values()] == [
        None,
        [100.0, 10.0, 1.0],
        [0.0, 0.0, 0.0],
        # Its counters began anew.
        [1.667, 1.0, 0.017],
        [10.0, 0.0, 0.0],
    ]


def test_names_of_tenants_and_odd_samples_stop_nothing(tenant, clusters, write, objects):
    first, second = clusters
    names = ["\0", "a\0b\x1b[31m\n", "x" * 40_000, "", "'; DROP TABLE provisioning_cluster; --"]
    hostile = {"groups": [group(name, ("t", 1, 1)) for name in names], "topics": {}}
    odd = {"groups": [{"group": "g", "partitions": [{"since_ms": "x"}]}], "topics": {"t": [1]}}
    huge = "cl_" + "x" * 10_000
    write(
        (first, NOON_MS, hostile),
        (second, NOON_MS, odd),
        ("cl_\0", NOON_MS, odd),
        (huge, NOON_MS, odd),
        ("cl_unheardof", NOON_MS, odd),
        same={huge: 1, "\0": 2},
    )
    done = ingest_samples(objects=objects)
    assert (done.files, done.samples, done.damaged) == (1, 2, 0)
    assert newest(tenant, first).content == hostile
    assert newest(tenant, second).content == odd
    (series,) = minutes(first).values()
    shown = sorted(series["groups"], key=len)
    assert shown[0] == ""
    assert len(shown) == len(names)
    assert len(shown[-1]) == 249
    assert minutes(second) == {}


def test_a_damaged_file_is_noted_and_stops_no_other(tenant, clusters, write, objects):
    cluster, _ = clusters
    for number, data in enumerate((b"", b"\x1f\x8b broken", b"x" * 2**20)):
        objects.put_new(file_key(NOON_MS + number, 1), data)
    # Its name says another keeper than its content.
    line = sample_line(cluster, NOON_MS, b"{}")
    forged = encode_file([line], {}, emitted_at_ms=NOON_MS + 5, term=1, whole=False)
    objects.put_new(file_key(NOON_MS + 5, 7), forged)
    objects.put_new(f"{hour_prefix(NOON_MS)}notes.txt", b"")
    write((cluster, NOON_MS, {"groups": [group("a")]}), at_ms=NOON_MS + 9)
    done = ingest_samples(objects=objects)
    assert (done.files, done.damaged) == (1, 4)
    assert newest(tenant, cluster).content == {"groups": [group("a")]}
    states = list(SampleFile.objects.order_by("key").values_list("state", flat=True))
    assert states == ["damaged"] * 4 + ["ingested"]
    assert ingest_samples(objects=objects).damaged == 0


def test_a_sample_of_the_future_is_refused(tenant, clusters, write, objects):
    cluster, _ = clusters
    write((cluster, NOON_MS + HOUR_MS, {"groups": []}))
    assert ingest_samples(objects=objects).samples == 0
    assert newest(tenant, cluster) is None


def test_an_organization_sees_its_own_samples_alone(tenant, clusters, write, objects):
    cluster, _ = clusters
    other = make_tenant("other-samples")
    write((cluster, NOON_MS, {"groups": [], "connections": 1}))
    ingest_samples(objects=objects)
    for model in (ClusterSample, SampleMinute):
        for tenant_id, count in ((tenant.id, 1), (other.id, 0)):
            with organization_scope(tenant_id):
                assert model.objects.count() == count, model
    with organization_scope(other.id):
        assert newest_sample(organization_id=tenant.id, cluster_id=cluster) is None
    # Nor is there a way around, by the parts of a table.
    with pytest.raises(DatabaseError, match="permission denied"), transaction.atomic():
        connection.cursor().execute("TABLE samples.minute_20300317")


def test_a_purged_cluster_has_no_samples(tenant, clusters, write, objects):
    cluster, other = clusters
    write(*((name, NOON_MS, {"groups": []}) for name in clusters))
    ingest_samples(objects=objects)
    with organization_scope(tenant.id):
        Cluster.objects.filter(pk=cluster).update(intent=Intent.PURGED)
        remove_samples(cluster_id=cluster)
    write((cluster, NOON_MS + 5, {"groups": []}), at_ms=NOON_MS + 5)
    assert ingest_samples(objects=objects).samples == 0
    assert (newest(tenant, cluster), minutes(cluster)) == (None, {})
    assert newest(tenant, other) is not None


def test_files_of_a_whole_day_are_taken_in_in_parts(tenant, clusters, write, objects, monkeypatch):
    monkeypatch.setattr(sample_ingest, "FILES_A_TRANSACTION", 3)
    cluster, _ = clusters
    for number in range(10):
        at_ms = NOON_MS - 23 * HOUR_MS + number * 2 * HOUR_MS
        write((cluster, at_ms, {"groups": [group(f"{number}")]}), at_ms=at_ms)
    # Older than files are kept.
    write((cluster, 1, {"groups": []}), at_ms=NOON_MS - 25 * HOUR_MS)
    assert ingest_samples(objects=objects, limit_s=0).files == 0
    assert ingest_samples(objects=objects).files == 10
    assert newest(tenant, cluster).content == {"groups": [group("9")]}


def test_hours_are_added_up_once_they_have_ended(tenant, clusters, write, objects, at_noon):
    cluster, _ = clusters
    for number, lag in enumerate((5, 9, 2)):
        at_ms = NOON_MS + number * MINUTE_MS
        topics = {"t": [6000 * number, 0, 60 * number]}
        content = {"groups": [group("a", ("t", lag, at_ms - 1000 * lag))], "topics": topics}
        write((cluster, at_ms, content | {"connections": lag}), at_ms=at_ms)
    ingest_samples(objects=objects)
    assert sample_history.add_up_hours() == 0, "the hour has not ended"
    at_noon(NOON + timedelta(hours=1, minutes=3))
    write(at_ms=NOON_MS + HOUR_MS + 150_000)
    ingest_samples(objects=objects)
    assert sample_history.add_up_hours() == 1
    assert sample_history.add_up_hours() == 0
    with organization_scope(tenant.id):
        (row,) = SampleHour.objects.all()
    assert (row.at, row.cluster_id) == (NOON, cluster)
    assert row.series == {
        "connections": 9,
        "groups": {"a": {"t": [9, 9.0]}},
        "topics": {"t": [66.667, 0.0, 0.667]},
    }


def parts(kind):
    query = "SELECT inhrelid::regclass::text FROM pg_inherits WHERE inhparent = %s::regclass"
    with connection.cursor() as cursor:
        cursor.execute(query, [f"provisioning_sample{kind}"])
        return sorted(name for (name,) in cursor.fetchall())


def test_tables_have_parts_for_the_days_that_are_kept(clusters, write, objects, at_noon):
    cluster, _ = clusters
    write((cluster, NOON_MS, {"groups": []}))
    ingest_samples(objects=objects)
    assert len(minutes(cluster)) == 1
    assert len(parts("minute")) == 4
    assert len(parts("hour")) == 33
    today = f"samples.minute_{NOON:%Y%m%d}"
    assert today in parts("minute")
    at_noon(NOON + timedelta(days=1))
    assert today in parts("minute")
    assert len(minutes(cluster)) == 1
    at_noon(NOON + timedelta(days=2))
    assert today not in parts("minute")
    assert minutes(cluster) == {}
    assert (len(parts("minute")), len(parts("hour"))) == (4, 33)


def test_files_are_removed_after_a_day(write, objects, at_noon):
    for hours in (0, 1, 30):
        write(at_ms=NOON_MS - hours * HOUR_MS)
    ingest_samples(objects=objects)
    assert sample_history.remove_old_files(objects) == 1
    assert len(list(objects.list(PREFIX))) == 2
    at_noon(NOON + timedelta(hours=24))
    sample_history.keep_samples()
    assert list(objects.list(PREFIX)) == [file_key(NOON_MS, 1)]
    assert list(SampleFile.objects.values_list("key", flat=True)) == [file_key(NOON_MS, 1)]


def test_an_empty_pass_costs_little(objects, write, django_assert_max_num_queries):
    write()
    ingest_samples(objects=objects)
    with django_assert_max_num_queries(2):
        began = time.monotonic()
        assert ingest_samples(objects=objects).files == 0
    assert time.monotonic() - began < 1.0
