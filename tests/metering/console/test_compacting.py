"""Files of past days are joined: each row counts once, wherever the work ends."""

import dataclasses
import io
import random
from datetime import timedelta

import pyarrow.parquet as pq
import pytest

from console.base.common.conf import config
from console.base.common.tenancy import system_scope
from metering.choices import RunState
from metering.events.keys import manifest_key
from metering.events.manifests import parse_manifest
from metering.events.records import decode_usage
from metering.models import FileCoverage, JudgedHour, ProvisionalMinute, UsageFile
from metering.periods import DAY, HOUR_MS, MINUTE_MS, to_ms
from metering.services import compacting, month_completeness, rollup_inputs
from metering.services.compacting import (
    JOINED_AFTER,
    REPLACED_KEPT,
    compact_day,
    compact_past_days,
    remove_replaced,
)
from metering.services.ingest import ingest_usage
from metering.services.rollup import roll_up
from metering.services.totals import emitted_files, files_of_day, has_grown
from tests.metering.console.conftest import NOON
from tests.metering.console.files import Block, Window, overwrite
from tests.metering.console.jobs import plain_job
from tests.metering.console.test_rollup import TODAY, emit, home, rows
from tests.spark.jobs import compact_in

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("clock", "home")]
__all__ = ["home"]
T = to_ms(NOON)
CELL = "local"


@pytest.fixture
def job(spark):
    """The Spark job, in the tests' session."""
    return compact_in(spark)


@pytest.fixture
def published(agent, clock):
    """Six files of a day, of which one is there twice, rolled up; it is time to join them."""

    def make():
        for number in range(5):
            since = None if not number else T + (number - 1) * MINUTE_MS
            at_ms = T + number * MINUTE_MS
            entry = agent.entry(
                since,
                at_ms,
                sequences=(number, number),
                times=(at_ms - MINUTE_MS, at_ms),
                storage=(at_ms - MINUTE_MS, at_ms),
            )
            blocks = [Block(number, at_ms, (100 + number,))]
            windows = [Window(T + number * MINUTE_MS, T + (number + 1) * MINUTE_MS, 7)]
            agent.emit(NOON + timedelta(minutes=number), entry, blocks, windows)
        twin = agent.twin("agent-2")
        twin.emit(NOON, agent.entry(None, T, sequences=(0, 0)), [Block(0, T, (100,))])
        run = roll_up(day=TODAY, job=plain_job)
        clock.now = NOON + JOINED_AFTER + DAY
        return run

    return make


def stored_rows(store):
    """All rows of the files that count by their manifests, by those alone."""
    manifests = [
        parse_manifest(store.get(key)) for key in store.list("v1/") if key.endswith(".json")
    ]
    replaced = {file.key for manifest in manifests for file in manifest.replaces}
    return sorted(
        str(row)
        for manifest in manifests
        if manifest.key not in replaced
        for row in decode_usage(store.get(manifest.key)).to_pylist()
    )


def test_a_day_counts_the_same_before_and_after(published, store, job, clock):
    first = published()
    before, usage = stored_rows(store), rows("hour")
    with system_scope():
        minutes = ProvisionalMinute.objects.count()
        hours = list(JudgedHour.objects.order_by("hour").values_list("hour", "complete", "reason"))
    assert compact_past_days(job=job) == 1
    assert stored_rows(store) == before
    (joined,) = files_of_day(CELL, TODAY)
    assert joined.rows == len(before)
    assert len(emitted_files(CELL, TODAY)) == 6
    assert not has_grown(TODAY, first)
    assert [file.key for file in rollup_inputs([first.pk])] == [joined.key]
    again = roll_up(day=TODAY, job=plain_job)
    assert again.state == RunState.UNCHANGED
    assert again.content_sha256 == first.content_sha256
    assert (again.report["duplicates"], rows("hour")) == (first.report["duplicates"], usage)
    assert month_completeness(TODAY).stale_days == []
    with system_scope():
        assert ProvisionalMinute.objects.count() <= minutes
        assert hours == list(
            JudgedHour.objects.order_by("hour").values_list("hour", "complete", "reason")
        )
        assert list(FileCoverage.objects.values_list("file", flat=True)) == [joined.key]
    assert compact_past_days(job=job) == 0


def test_replaced_files_stay_for_a_while(published, store, job, clock):
    published()
    compact_past_days(job=job)
    (joined,) = files_of_day(CELL, TODAY)
    assert remove_replaced() == 0
    clock.now += REPLACED_KEPT + timedelta(minutes=1)
    kept = store.get(joined.key)
    overwrite(store, joined.key, b"damaged")
    assert remove_replaced() == 0
    overwrite(store, joined.key, kept)
    before = stored_rows(store)
    assert remove_replaced() == 6
    assert list(store.list("v1/cell=local/day=")) == sorted([joined.key, manifest_key(joined.key)])
    assert stored_rows(store) == before
    assert remove_replaced() == 0
    assert roll_up(day=TODAY, job=plain_job).state == RunState.UNCHANGED


class Killed(BaseException):
    """The process is gone."""


STEPS = ["run_compact", "put_data", "put_manifest", "ingest_usage"]


@pytest.mark.parametrize("step", STEPS)
def test_a_job_that_is_killed_leaves_each_row_once(published, store, job, monkeypatch, step):
    first = published()
    before = stored_rows(store)

    def killed(*_, **__):
        raise Killed

    with monkeypatch.context() as patch:
        job_now = killed if step == "run_compact" else job
        if step.startswith("put"):
            put_new = store.put_new

            class Dying:
                """Dies before it stores the data file, or the manifest."""

                def __getattr__(self, name):
                    return getattr(store, name)

                def put_new(self, key, data):
                    if step == "put_data" or key.endswith(".json"):
                        raise Killed
                    return put_new(key, data)

            patch.setattr(compacting, "usage_store", Dying)
        if step == "ingest_usage":
            patch.setattr(
                compacting,
                "_put_replacement",
                lambda *parts, put=compacting._put_replacement: (put(*parts), killed()),
            )
        with pytest.raises(Killed):
            compact_day(TODAY, job=job_now)
    assert stored_rows(store) == before
    assert roll_up(day=TODAY, job=plain_job).content_sha256 == first.content_sha256
    made = compact_day(TODAY, job=job)
    # A manifest that was written counts, and its files are not joined again.
    assert made == (0 if step == "ingest_usage" else 1)
    assert len(files_of_day(CELL, TODAY)) == 1
    assert stored_rows(store) == before
    again = roll_up(day=TODAY, job=plain_job)
    assert again.state == RunState.UNCHANGED
    assert again.report["rows_read"] == first.report["rows_read"]


def test_a_damaged_file_is_left_out_and_comes_in_when_it_is_whole(published, store, job):
    published()
    victim = emitted_files(CELL, TODAY)[2]
    whole = store.get(victim.key)
    overwrite(store, victim.key, whole[:-1] + bytes([whole[-1] ^ 1]))
    assert compact_day(TODAY, job=job) == 1
    assert victim.key in {file.key for file in files_of_day(CELL, TODAY)}
    assert len(files_of_day(CELL, TODAY)) == 2
    overwrite(store, victim.key, whole)
    assert roll_up(day=TODAY, job=plain_job).state == RunState.UNCHANGED


def test_a_database_that_was_restored_finds_the_replacement(published, store, job, clock):
    first = published()
    compact_day(TODAY, job=job)
    clock.now += REPLACED_KEPT + DAY
    remove_replaced()
    emitted = emitted_files(CELL, TODAY)
    with system_scope():
        FileCoverage.objects.all().delete()
        UsageFile.objects.all().delete()
    ingest_usage(since=TODAY)
    assert emitted_files(CELL, TODAY) == emitted
    assert not has_grown(TODAY, first)
    assert roll_up(day=TODAY, job=plain_job).state == RunState.UNCHANGED


def test_files_come_in_groups_of_the_size_that_is_set(published, store, job, settings):
    published()
    usage = dataclasses.replace(config().usage, joined_file_mib=0)
    settings.FRESHET = dataclasses.replace(config(), usage=usage)
    before = stored_rows(store)
    assert compact_day(TODAY, job=job) == 3
    assert stored_rows(store) == before


def test_a_day_that_is_not_published_is_not_joined(agent, clock, job):
    emit(agent, [0, 1])
    emit(agent, [2])
    ingest_usage()
    clock.now = NOON + JOINED_AFTER + DAY
    assert compact_past_days(job=job) == 0


@pytest.mark.parametrize("seed", range(3))
def test_random_days(agent, store, job, clock, seed):
    draw = random.Random(seed)
    for number in range(12):
        twin = agent.twin(f"agent-{draw.randrange(2)}")
        twin.incarnation = 1 + draw.randrange(2)
        first = draw.randrange(20)
        blocks = [
            Block(block, T + (block % 11) * HOUR_MS, (block, draw.choice([7, 7, 7, 8])))
            for block in range(first, first + draw.randrange(1, 9))
        ]
        entry = twin.entry(T, T + 12 * HOUR_MS, sequences=(first, blocks[-1].sequence))
        twin.emit(NOON + timedelta(seconds=number), entry, draw.sample(blocks, len(blocks)))
    first_run = roll_up(day=TODAY, job=plain_job)
    clock.now = NOON + JOINED_AFTER + DAY
    before = stored_rows(store)
    assert compact_day(TODAY, job=job) == 1
    assert stored_rows(store) == before
    again = roll_up(day=TODAY, job=plain_job)
    assert again.state == RunState.UNCHANGED
    for count in ("rows_read", "rows_distinct", "duplicates", "conflicts", "content_sha256"):
        assert again.report[count] == first_run.report[count], count
    (joined,) = files_of_day(CELL, TODAY)
    assert pq.read_metadata(io.BytesIO(store.get(joined.key))).num_rows == len(before)
