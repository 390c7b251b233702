"""A day's roll-up: planned, run, checked, published once, and never changed."""

import dataclasses
import json
from datetime import timedelta
from decimal import Decimal

import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from django.db import connection

from console.base.common.conf import config
from console.base.common.tenancy import system_scope
from metering.choices import QualityKind, RunState
from metering.errors import (
    DayNotOver,
    PublishRefused,
    RollupBusy,
    RollupFailed,
    UnknownCell,
)
from metering.models import QualityResult, RollupPointer, RollupRun, StagedRow, UsageRow
from metering.periods import DAY, HOUR_MS, MINUTE_MS, from_ms, to_ms
from metering.services import folding, month_completeness, rollup_inputs, usage_row_ids
from metering.services.comparing import compare_month
from metering.services.ingest import ingest_usage
from metering.services.month_usage import month_totals
from metering.services.publishing import row_id
from metering.services.rollup import roll_up, roll_up_recent_days
from metering.services.run_folders import HOURS, MANIFEST, RunFolder, run_store
from metering.services.usage import UsageQuery, list_usage
from tests.metering.console.conftest import NOON
from tests.metering.console.files import Block, Window, overwrite
from tests.metering.console.jobs import plain_job, spoiled_job, write_table

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("clock", "home")]
T = to_ms(NOON)
TODAY = NOON.date()
AFTER = NOON.replace(hour=1) + DAY


@pytest.fixture
def home(settings, store, tmp_path, clock):
    """Folders of this test alone; it is the night after."""
    usage = dataclasses.replace(
        config().usage,
        location=str(store.root),
        rollups=str(tmp_path / "rollups"),
        spark_master="local[1]",
    )
    settings.FRESHET = dataclasses.replace(config(), usage=usage)
    clock.now = AFTER


def emit(agent, numbers, *, at=NOON, quantity=100, windows=(), incarnation=1):
    """A file of a block an hour."""
    agent.incarnation = incarnation
    blocks = [Block(number, T + number * HOUR_MS, (quantity, number)) for number in numbers]
    last = max(numbers, default=0)
    entry = agent.entry(T, T + last * HOUR_MS + 1, sequences=(min(numbers, default=0), last))
    return agent.emit(at, entry, blocks, windows)


def rows(granularity, run=None):
    """(meter, hours since noon) → quantity, of the current run or of another."""
    if granularity == "hour":
        return hours_in_files(run or RollupPointer.objects.get().run)
    with system_scope():
        matches = UsageRow.objects.filter(granularity=granularity, billed=True).order_by(
            "window_start"
        )
        matches = matches.filter(run=run) if run else matches.current()
        return {
            (row.meter, int((row.window_start - NOON).total_seconds()) // 3600): int(row.quantity)
            for row in matches
        }


def hours_in_files(run):
    table = pq.read_table(RunFolder(run.day, run.pk).path(HOURS))
    return {
        (row["meter"], (row["window_start_ms"] - T) // HOUR_MS): int(row["quantity"])
        for row in table.to_pylist()
        if row["billed"]
    }


def test_a_day_is_published_by_hour_and_by_day(agent):
    manifest = emit(agent, [0, 1, 3], windows=[Window(T, T + MINUTE_MS, 2**62)])
    emit(agent.twin("agent-2"), [1, 3])
    said: list[str] = []
    run = roll_up(day=TODAY, job=plain_job, say=said.append)
    assert run.state == RunState.PUBLISHED
    assert rows("hour") == {
        ("ingress_bytes", 0): 100,
        ("ingress_bytes", 1): 101,
        ("ingress_bytes", 3): 103,
        ("storage_byte_minutes", 0): 2**62,
    }
    assert rows("day") == {("ingress_bytes", -12): 304, ("storage_byte_minutes", -12): 2**62}
    assert RollupPointer.objects.get().run == run
    assert manifest.key in {file.key for file in rollup_inputs([run.pk])}
    assert not StagedRow.objects.exists()
    assert any("stage 1 of 1" in line for line in said)
    assert "published 4 hours in files and 2 days" in said[-1]
    with system_scope():
        assert len(usage_row_ids("org_a", "cl_a", "ingress_bytes", TODAY)) == 1
        row = UsageRow.objects.get(granularity="day", meter="ingress_bytes")
    key = [row.cluster_id, row.topic_id, row.principal, row.meter, to_ms(row.window_start), True]
    assert row.pk == row_id(run.pk, "day", key)


def test_twice_is_once(agent):
    emit(agent, [0, 1])
    first = roll_up(day=TODAY, job=plain_job)
    emit(agent.twin("agent-2"), [0, 1])
    said: list[str] = []
    second = roll_up(day=TODAY, job=plain_job, say=said.append)
    assert second.state == RunState.UNCHANGED
    assert len(second.inputs) == 2
    assert f"nothing new is published, {first.pk} has the same rows" in said[-1]
    assert RollupPointer.objects.get().run == first


def test_a_file_that_came_late_makes_a_new_run_and_keeps_the_old_rows(agent):
    emit(agent, [0, 1])
    first = roll_up(day=TODAY, job=plain_job)
    before = rows("day")
    emit(agent, [2], at=AFTER + timedelta(hours=3))
    second = roll_up(day=TODAY, job=plain_job)
    assert second.state == RunState.PUBLISHED
    assert RollupPointer.objects.get().run == second
    assert rows("day") == {("ingress_bytes", -12): 303}
    assert rows("day", first) == before == {("ingress_bytes", -12): 201}


def test_an_empty_correction_is_published_too(agent, store):
    manifest = emit(agent, [0])
    roll_up(day=TODAY, job=plain_job)
    overwrite(store, manifest.key, b"")
    second = roll_up(day=TODAY, job=plain_job)
    assert second.state == RunState.PUBLISHED
    assert rows("day") == {}


def test_rows_of_other_days_stay_there(agent):
    emit(agent, [0, 11, 12, 13])
    roll_up(day=TODAY, job=plain_job)
    assert rows("day") == {("ingress_bytes", -12): 211}
    tomorrow = TODAY + DAY
    roll_up(day=tomorrow, job=plain_job, early=True)
    assert rows("day") == {("ingress_bytes", -12): 211, ("ingress_bytes", 12): 225}


def test_an_early_roll_up_is_final_for_nobody(agent, clock):
    clock.now = NOON
    emit(agent, [0])
    early = roll_up(day=TODAY, job=plain_job, early=True)
    assert early.state == RunState.PUBLISHED
    emit(agent, [1], at=NOON + timedelta(minutes=1))
    ingest_usage()
    with system_scope():
        assert month_totals(TODAY, ["org_a"]) == {"org_a": {("cl_a", "ingress_bytes"): 201}}
        assert month_completeness(TODAY).missing_days[0] == TODAY
    assert listed("org_a") == [(True, 201)]
    # The night after rolls it up, though there is no file that it has not read.
    clock.now = AFTER
    roll_up(day=TODAY, job=plain_job, early=True)
    assert not RollupPointer.objects.get().early
    assert listed("org_a") == [(False, 201)]
    assert compare_month(TODAY).named == []


def test_early_rows_become_final_where_the_whole_day_has_the_same(agent, clock):
    clock.now = NOON
    emit(agent, [0])
    early = roll_up(day=TODAY, job=plain_job, early=True)
    assert listed("org_a") == [(True, 100)]
    clock.now = AFTER
    assert roll_up_recent_days(job=plain_job) == [TODAY]
    pointer = RollupPointer.objects.get()
    assert (pointer.run, pointer.early) == (early, False)
    assert listed("org_a") == [(False, 100)]
    assert compare_month(TODAY).named == []


def listed(organization_id):
    """(provisional, quantity) of the day, as the API lists it."""
    start = NOON.replace(hour=0)
    query = UsageQuery(organization_id, start, start + DAY, group_by="meter", billed=True)
    with system_scope():
        return [(item.provisional, item.quantity) for item in list_usage(query, limit=10).items]


def test_quality_is_kept_with_the_run(agent, store):
    emit(agent, [0, 1])
    emit(agent.twin("agent-2"), [0], quantity=7)
    harmed = emit(agent.twin("agent-3"), [4])
    overwrite(store, harmed.key, b"x")
    run = roll_up(day=TODAY, job=plain_job)
    assert rows("day") == {("ingress_bytes", -12): 101}
    kinds = {kind: list(QualityResult.objects.filter(run=run, kind=kind)) for kind in QualityKind}
    (conflict,) = kinds[QualityKind.CONFLICT]
    assert conflict.detail["identities"] == 1
    assert {row["quantity"] for row in conflict.detail["rows"]} == {100, 7}
    (damaged,) = kinds[QualityKind.DAMAGED_INPUT]
    assert (damaged.name, damaged.passed) == (harmed.key, False)
    assert {result.passed for result in kinds[QualityKind.CHECK]} == {True}
    assert any("cl_a" in result.name for result in kinds[QualityKind.INCOMPLETE_HOUR])


def more_hours(report, output):
    report["hours"] += 1


def other_totals(report, output):
    report["control_totals"]["ingress_bytes"] = "1"


def own_check_failed(report, output):
    report["checks"][0]["passed"] = False


def other_day(report, output):
    report["day"] = "2026-11-01"


def change_table(output, folder, change):
    rows = [row for file in (output / folder).iterdir() for row in pq.read_table(file).to_pylist()]
    for file in (output / folder).iterdir():
        file.unlink()
    (output / folder).rmdir()
    change(rows)
    write_table(output / folder, rows)


def day_above_its_hours(report, output):
    def change(rows):
        rows[0]["quantity"] += 1
        rows[1]["quantity"] -= 1

    change_table(output, "days", change)


def hours_above_their_day(report, output):
    def change(rows):
        of_meter = [row for row in rows if row["meter"] == "ingress_bytes"]
        of_meter[0]["principal"] = "User:somebody else"

    change_table(output, "hours", change)


def hour_below_zero(report, output):
    def change(rows):
        of_meter = [row for row in rows if row["meter"] == "ingress_bytes"]
        of_meter[0]["quantity"] -= 1_000
        of_meter[1]["quantity"] += 1_000

    change_table(output, "hours", change)


def day_that_is_an_hour(report, output):
    def change(rows):
        rows[0]["window_end_ms"] = rows[0]["window_start_ms"] + HOUR_MS

    change_table(output, "days", change)


def window_of_another_day(report, output):
    def change(rows):
        rows[0]["window_start_ms"] += 24 * HOUR_MS
        rows[0]["window_end_ms"] += 24 * HOUR_MS

    change_table(output, "hours", change)


def unknown_meter(report, output):
    def change(rows):
        for row in rows:
            row["meter"] = "coffee"

    report["control_totals"] = {"coffee": str(sum(map(int, report["control_totals"].values())))}
    change_table(output, "hours", change)
    change_table(output, "days", change)


@pytest.mark.parametrize(
    "change",
    [
        more_hours,
        other_totals,
        own_check_failed,
        other_day,
        day_above_its_hours,
        hours_above_their_day,
        hour_below_zero,
        day_that_is_an_hour,
        window_of_another_day,
        unknown_meter,
    ],
)
@pytest.mark.django_db(transaction=True)
def test_what_fails_a_check_is_not_published(agent, change):
    emit(agent, [0, 1], windows=[Window(T, T + MINUTE_MS, 50)])
    with pytest.raises(PublishRefused):
        roll_up(day=TODAY, job=spoiled_job(change))
    run = RollupRun.objects.get()
    assert run.state == RunState.FAILED
    assert run.error
    assert QualityResult.objects.filter(run=run, passed=False, kind=QualityKind.CHECK).exists()
    assert not RollupPointer.objects.exists()
    assert not StagedRow.objects.exists()
    assert roll_up(day=TODAY, job=plain_job).state == RunState.PUBLISHED


@pytest.mark.django_db(transaction=True)
def test_rows_of_another_cell_and_rows_that_cannot_be_read_are_refused(agent):
    emit(agent, [0])

    def other_cell(report, output):
        change_table(output, "days", lambda rows: [row.update(cell="elsewhere") for row in rows])

    def hours_of_another_cell(report, output):
        change_table(output, "hours", lambda rows: [row.update(cell="elsewhere") for row in rows])

    def unreadable(report, output):
        next((output / "hours").iterdir()).write_bytes(b"PAR1")

    for change, words in [
        (other_cell, "other cells"),
        (hours_of_another_cell, "other cells"),
        (unreadable, "cannot be read"),
    ]:
        with pytest.raises(RollupFailed, match=words):
            roll_up(day=TODAY, job=spoiled_job(change))


def test_hours_that_are_lost_come_back_with_the_next_roll_up(agent):
    emit(agent, [0, 1])
    first = roll_up(day=TODAY, job=plain_job)
    hours = rows("hour")
    assert len(hours) == 2
    run_store().remove(f"{RunFolder(first.day, first.pk).key}/{HOURS}/part-1")
    assert rows("hour") != hours
    assert roll_up(day=TODAY, job=plain_job).state == RunState.UNCHANGED
    assert rows("hour") == hours


def test_an_interrupted_run_counts_for_nothing(agent):
    def interrupted(report, output):
        raise KeyboardInterrupt

    emit(agent, [0])
    with pytest.raises(KeyboardInterrupt):
        roll_up(day=TODAY, job=spoiled_job(interrupted))
    assert RollupRun.objects.get().state == RunState.INTERRUPTED
    assert roll_up(day=TODAY, job=plain_job).state == RunState.PUBLISHED


def test_a_run_whose_process_was_killed_is_found_interrupted_by_the_next(agent):
    emit(agent, [0])
    killed = RollupRun.objects.create(cell=config().cell.id, day=TODAY)
    roll_up(day=TODAY, job=plain_job)
    killed.refresh_from_db()
    assert killed.state == RunState.INTERRUPTED


def test_another_run_that_was_published_meanwhile_stays(agent):
    emit(agent, [0])

    def meanwhile(report, output):
        run = RollupRun.objects.create(
            cell=config().cell.id, day=TODAY, state=RunState.PUBLISHED, published_at=AFTER
        )
        RollupPointer.objects.create(cell=config().cell.id, day=TODAY, run=run)

    with pytest.raises(RollupBusy, match="was published while"):
        roll_up(day=TODAY, job=spoiled_job(meanwhile))


def test_a_day_that_is_not_over_and_a_cell_that_is_not_ours_are_refused():
    with pytest.raises(DayNotOver):
        roll_up(day=AFTER.date(), job=plain_job)
    with pytest.raises(UnknownCell):
        roll_up(day=TODAY, cell="elsewhere", job=plain_job)


def test_the_run_says_what_it_is_to_read(agent, store):
    manifest = emit(agent, [0])
    run = roll_up(day=TODAY, job=plain_job)
    plain = json.loads(RunFolder(run.day, run.pk).read(MANIFEST))
    assert plain["usage_root"] == str(store.root)
    assert plain["inputs"] == [
        {
            "key": manifest.key,
            "size_bytes": manifest.size_bytes,
            "sha256": manifest.sha256,
            "rows": manifest.rows,
        }
    ]


def test_nights_roll_up_what_was_missed_and_what_has_grown(agent, clock):
    emit(agent, [0], at=NOON)
    emit(agent, [24], at=NOON + DAY)
    clock.now = (NOON + 2 * DAY).replace(hour=0, minute=29)
    assert roll_up_recent_days(job=plain_job) == []
    from metering.services.ingest import ingest_usage  # noqa: PLC0415 (as beat does)

    ingest_usage()
    assert roll_up_recent_days(job=plain_job) == []
    clock.now += timedelta(minutes=1)
    assert roll_up_recent_days(job=plain_job) == [TODAY, TODAY + DAY]
    assert roll_up_recent_days(job=plain_job) == []
    # The same rows again: looked at once in the next night, and not published anew.
    emit(agent.twin("agent-2"), [24], at=clock.now)
    ingest_usage()
    assert roll_up_recent_days(job=plain_job) == []
    clock.now += DAY
    assert roll_up_recent_days(job=plain_job) == [TODAY + DAY, TODAY + 2 * DAY]
    states = list(RollupRun.objects.order_by("created_at", "day").values_list("state", flat=True))
    assert states == ["published", "published", "unchanged", "published"]
    clock.now += DAY
    assert roll_up_recent_days(job=plain_job) == [TODAY + 3 * DAY]


def test_a_day_is_made_anew_however_late_its_file_comes(agent, clock):
    emit(agent, [0], at=NOON)
    clock.now = (NOON + DAY).replace(hour=2)
    from metering.services.ingest import ingest_usage  # noqa: PLC0415 (as beat does)

    ingest_usage()
    assert roll_up_recent_days(job=plain_job) == [TODAY]
    clock.now += 50 * DAY
    emit(agent, [1], at=clock.now)
    ingest_usage()
    clock.now += DAY
    assert TODAY in roll_up_recent_days(job=plain_job)
    assert rows("day") == {("ingress_bytes", -12): 201}
    clock.now += DAY
    assert TODAY not in roll_up_recent_days(job=plain_job)


def test_a_day_that_fails_keeps_no_other_from_being_rolled_up(agent, clock):
    emit(agent, [0], at=NOON)
    emit(agent, [24], at=NOON + DAY)
    clock.now = (NOON + 2 * DAY).replace(hour=2)
    from metering.services.ingest import ingest_usage  # noqa: PLC0415 (as beat does)

    ingest_usage()

    def fails_first(run, folder, say):
        if run.day == TODAY:
            raise RollupFailed
        return plain_job(run, folder, say)

    assert roll_up_recent_days(job=fails_first) == [TODAY + DAY]
    assert roll_up_recent_days(job=plain_job) == []
    clock.now += DAY
    assert TODAY in roll_up_recent_days(job=plain_job)


def test_many_rows_are_published(agent, monkeypatch):
    """More than one batch of a copy, and quantities beyond 64 bits."""
    monkeypatch.setattr(folding, "PAIRS_MAX", 1_500)
    blocks = [
        Block(number, T + number % 60 * MINUTE_MS, (2**62,) * 3, principal=f"User:{number}")
        for number in range(1_500)
    ]
    entry = agent.entry(T, T + HOUR_MS, sequences=(0, 1_499))
    agent.emit(NOON, entry, blocks)
    roll_up(day=TODAY, job=plain_job)
    with system_scope():
        assert UsageRow.objects.current().filter(granularity="day").count() == 1_500
        assert set(UsageRow.objects.values_list("quantity", flat=True)) == {Decimal(3 * 2**62)}
    assert from_ms(T) == NOON
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM metering_stagedrow")
        assert cursor.fetchone() == (0,)


def test_the_largest_pairs_of_a_day_are_kept_and_the_rest_is_folded_by_topic(agent, monkeypatch):
    monkeypatch.setattr(folding, "PAIRS_MAX", 3)
    topics = ["a" * 32, "b" * 32]
    used = [(topics[number % 2], f"User:{number}", 10 * number) for number in range(1, 7)]
    used += [(topics[0], "Others:*", 7), (topics[1], "User:__freshet", 99)]
    blocks = [
        Block(number, T, (quantity,), principal=principal, topic_id=topic, billed=quantity != 99)
        for number, (topic, principal, quantity) in enumerate(used)
    ]
    stored = Window(T, T + MINUTE_MS, 5, topic_id=topics[0])
    agent.topics = dict(zip(topics, ["x", "y"], strict=True))
    agent.emit(NOON, agent.entry(T, T + HOUR_MS, sequences=(0, 8)), blocks, [stored])
    run = roll_up(day=TODAY, job=plain_job)
    with system_scope():
        days = list(UsageRow.objects.current().order_by("meter", "-quantity"))
    kept = {
        (row.meter, row.topic_id[0], row.principal, int(row.quantity), row.billed) for row in days
    }
    ingress = [
        (*of, True) for of in (("a", "User:6", 60), ("b", "User:5", 50), ("a", "User:4", 40))
    ]
    assert kept == {
        *(("ingress_bytes", *row) for row in ingress),
        ("ingress_bytes", "b", "Others:*", 40, True),
        ("ingress_bytes", "a", "Others:*", 27, True),
        ("ingress_bytes", "b", "User:__freshet", 99, False),
        ("storage_byte_minutes", "a", "", 5, True),
    }
    (folded,) = [row for row in days if row.quantity == 27]
    midnight_ms = to_ms(folded.window_start)
    key = (folded.cluster_id, folded.topic_id, "Others:*", "ingress_bytes", midnight_ms, True)
    assert folded.pk == row_id(run.pk, "day", key)
    files = pq.read_table(RunFolder(run.day, run.pk).path(HOURS))
    assert len(files.filter(pc.field("meter") == "ingress_bytes")) == len(used)
    assert compare_month(TODAY).named == []
