"""Usage files become minutes: each block and window once, whatever comes twice, late or damaged."""

import random
from dataclasses import replace
from datetime import timedelta

import pytest
from django.db import OperationalError

from console.base.common.conf import config
from console.base.common.tenancy import organization_scope, system_scope
from console.base.common.uses import principals_used
from metering.choices import FileState
from metering.events.keys import manifest_key
from metering.events.store import FolderUsageStore
from metering.models import IngestState, LaneCoverage, ProvisionalMinute, TopicName, UsageFile
from metering.periods import DAY, MINUTE_MS, from_ms, to_ms
from metering.services import absorbing, ingest
from metering.services.ingest import ingest_usage
from metering.services.month_usage import month_totals
from tests.metering.console.conftest import NOON
from tests.metering.console.files import PRINCIPAL, Block, Window, overwrite, remove
from tests.metering.console.world import publish_day

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("clock")]
T = to_ms(NOON)
MINUTE = timedelta(minutes=1)


def minutes(**filters):
    """(meter, minute) → quantity."""
    with system_scope():
        rows = ProvisionalMinute.objects.filter(**filters)
        quantities: dict[tuple[str, int], int] = {}
        for row in rows:
            key = (row.meter, int((row.minute - NOON) / MINUTE))
            quantities[key] = quantities.get(key, 0) + int(row.quantity)
        return quantities


def blocks(*numbers, quantity=1):
    """A block a minute, from noon on."""
    return [Block(number, T + number * MINUTE_MS + 5_000, (quantity,)) for number in numbers]


def emit(agent, first, last, *, at=None, **options):
    """A file with the blocks first..last."""
    entry = agent.entry(
        T + first * MINUTE_MS, T + (last + 1) * MINUTE_MS, sequences=(first, last), **options
    )
    moment = at or NOON + (last + 1) * MINUTE
    return agent.emit(moment, entry, blocks(*range(first, last + 1)))


def test_principals_that_moved_records_are_reported(
    agent, store, django_capture_on_commit_callbacks
):
    signals = []

    def hear(*, used, **_):
        signals.append(used)

    principals_used.connect(hear)
    try:
        entry = agent.entry(T, T + 2 * MINUTE_MS, sequences=(0, 2))
        rows = [Block(0, T + 1), Block(1, T + 61_000), Block(2, T + 62_000, principal="User:b")]
        agent.emit(NOON + 2 * MINUTE, entry, rows)
        with django_capture_on_commit_callbacks(execute=True):
            ingest_usage(store=store)
    finally:
        principals_used.disconnect(hear)
    assert signals == [{("cl_a", PRINCIPAL): NOON + MINUTE, ("cl_a", "User:b"): NOON + MINUTE}]


def test_rows_of_a_block_are_summed_by_minute_and_known_by_name(agent, store):
    entry = agent.entry(T, T + 2 * MINUTE_MS, sequences=(0, 2))
    agent.emit(
        NOON + 2 * MINUTE,
        entry,
        [
            Block(0, T + 1, (1, 2, 4)),
            Block(1, T + 59_999, (8,)),
            Block(2, T + 60_000, (16,)),
            Block(2, T + 60_000, (32,), meter="egress_bytes"),
            Block(2, T + 60_000, (64,), principal="User:__freshet", billed=False),
        ],
    )
    done = ingest_usage(store=store)
    assert (done.files, done.rows, done.damaged, done.remaining) == (1, 7, 0, 0)
    assert minutes(billed=True) == {
        ("ingress_bytes", 0): 15,
        ("ingress_bytes", 1): 16,
        ("egress_bytes", 1): 32,
    }
    assert minutes(billed=False) == {("ingress_bytes", 1): 64}
    with organization_scope("org_a"):
        assert TopicName.objects.get().name == "orders"
    with organization_scope("org_b"):
        assert not ProvisionalMinute.objects.exists()


def test_a_file_is_taken_in_once(agent, store):
    emit(agent, 0, 3)
    assert ingest_usage(store=store).files == 1
    assert ingest_usage(store=store).files == 0
    assert sum(minutes().values()) == 4


def test_what_two_agents_say_counts_once_in_whatever_order(agent, store):
    twin = agent.twin("agent-2")
    emit(twin, 3, 6)
    ingest_usage(store=store)
    emit(agent, 0, 4, at=NOON + MINUTE)
    emit(agent, 0, 9, at=NOON + 3 * MINUTE)
    emit(twin, 7, 7)
    ingest_usage(store=store)
    assert minutes() == {("ingress_bytes", number): 1 for number in range(10)}
    with system_scope():
        (lane,) = LaneCoverage.objects.all()
    assert [(sequence.lower, sequence.upper) for sequence in lane.sequences] == [(0, 10)]


@pytest.mark.parametrize("seed", range(8))
def test_overlapping_files_in_any_order_count_each_block_once(agent, store, seed):
    chance = random.Random(seed)
    covered = set()
    for number in range(12):
        first = chance.randrange(30)
        last = first + chance.randrange(12)
        emit(agent.twin(f"agent-{number}"), first, last, at=NOON + chance.randrange(60) * MINUTE)
        covered |= set(range(first, last + 1))
        if chance.random() < 0.4:
            ingest_usage(store=store)
    ingest_usage(store=store)
    assert minutes() == {("ingress_bytes", number): 1 for number in covered}


def test_lanes_of_one_number_in_different_clusters_are_different(agent, store):
    emit(agent, 0, 3)
    agent.cluster_id, agent.organization_id = "cl_b", "org_b"
    emit(agent, 0, 3)
    agent.incarnation = 2
    emit(agent, 0, 3, at=NOON + 9 * MINUTE)
    ingest_usage(store=store)
    assert sum(minutes(cluster_id="cl_a").values()) == 4
    assert sum(minutes(cluster_id="cl_b", organization_id="org_b").values()) == 8


def test_a_window_is_spread_over_its_minutes_to_the_last_unit(agent, store):
    entry = agent.entry(T, T + 5 * MINUTE_MS, storage=(T, T + 4 * MINUTE_MS))
    three = T + 3 * MINUTE_MS
    agent.emit(
        NOON + 5 * MINUTE,
        entry,
        windows=[
            Window(T, three, 7),
            Window(T, three, 3, partition=1),
            Window(three, three + MINUTE_MS, 2**62),
            Window(T, three, 6, meter="partition_minutes", partition=None),
            Window(T, three, 180, meter="broker_seconds", topic_id="", partition=None),
        ],
    )
    ingest_usage(store=store)
    storage = [minutes()["storage_byte_minutes", minute] for minute in range(4)]
    assert storage == [3, 3, 4, 2**62]
    assert [minutes()["partition_minutes", minute] for minute in range(3)] == [2, 2, 2]
    assert minutes(billed=False) == {("broker_seconds", minute): 60 for minute in range(3)}


def test_windows_that_come_twice_count_once(agent, store):
    for number, (first, last) in enumerate([(0, 4), (2, 6), (0, 7)]):
        span = (T + first * MINUTE_MS, T + last * MINUTE_MS)
        windows = [
            Window(T + index * MINUTE_MS, T + (index + 1) * MINUTE_MS, 10)
            for index in range(first, last)
        ]
        twin = agent.twin(f"agent-{number}")
        entry = twin.entry(T, T + 9 * MINUTE_MS, storage=span)
        twin.emit(NOON + 9 * MINUTE, entry, windows=windows)
    ingest_usage(store=store)
    assert minutes() == {("storage_byte_minutes", minute): 10 for minute in range(7)}


def spoil(store, manifest, how):
    """Damages a file, or what its manifest says of it."""
    key, plain = manifest.key, manifest_key(manifest.key)
    data = store.get(key)
    match how:
        case "truncated":
            overwrite(store, key, data[:-1])
        case "flipped":
            overwrite(store, key, bytes([data[0] ^ 1]) + data[1:])
        case "lost":
            remove(store, key)
        case "manifest no JSON":
            overwrite(store, plain, b"{")
        case "manifest without clusters":
            overwrite(store, plain, store.get(plain).replace(b'"clusters"', b'"klusters"'))
        case "manifest of another":
            overwrite(store, plain, store.get(plain).replace(b'.parquet"', b'0.parquet"'))
        case "other rows":
            overwrite(store, plain, store.get(plain).replace(b'"rows":', b'"rows":1'))
    return {key: data, plain: None}


@pytest.mark.parametrize(
    "how",
    [
        "truncated",
        "flipped",
        "lost",
        "manifest no JSON",
        "manifest without clusters",
        "manifest of another",
        "other rows",
    ],
)
def test_a_damaged_file_is_left_out_noted_and_stops_no_other(agent, store, clock, how):
    emit(agent, 0, 3)
    harmed = emit(agent, 4, 7)
    emit(agent, 8, 9)
    whole = {key: store.get(key) for key in (harmed.key, manifest_key(harmed.key))}
    spoil(store, harmed, how)
    done = ingest_usage(store=store)
    assert (done.files, done.damaged, done.remaining) == (2, 1, 0)
    assert {minute for _, minute in minutes()} == {0, 1, 2, 3, 8, 9}
    file = UsageFile.objects.get(state=FileState.DAMAGED)
    assert file.pk == harmed.key
    assert file.error
    # It is not looked at each time, and taken in once it is put right.
    assert ingest_usage(store=store).damaged == 0
    for key, data in whole.items():
        overwrite(store, key, data)
    clock.now = NOON + timedelta(minutes=10)
    assert ingest_usage(store=store).files == 1
    assert minutes() == {("ingress_bytes", number): 1 for number in range(10)}
    assert not UsageFile.objects.filter(state=FileState.DAMAGED).exists()


@pytest.mark.parametrize(
    "block",
    [
        Block(1, T, (1, -1)),
        Block(1, T, principal="User:\x00"),
        Block(1, T, topic_id="0" * 33),
    ],
)
def test_rows_that_cannot_be_are_left_out_with_all_of_their_file(agent, store, block):
    entry = agent.entry(T, T + MINUTE_MS, sequences=(0, 1))
    agent.emit(NOON, entry, [*blocks(0), block])
    emit(agent, 2, 2)
    done = ingest_usage(store=store)
    assert (done.files, done.damaged) == (1, 1)
    assert minutes() == {("ingress_bytes", 2): 1}


@pytest.mark.parametrize(
    ("name", "as_of_ms"),
    [
        ("a" * 300, T + MINUTE_MS),
        ("agent\0", T + MINUTE_MS),
        # A time that no calendar has, and one that no column takes.
        ("agent-1", 10**17),
        ("agent-1", 10**19),
    ],
)
def test_a_manifest_that_postgresql_does_not_take_stops_no_other(agent, store, name, as_of_ms):
    odd = replace(agent, name=name)
    odd.emit(NOON, agent.entry(T, as_of_ms, sequences=(0, 0), times=(T, T + 1)), blocks(0))
    emit(agent, 2, 2)
    done = ingest_usage(store=store)
    assert (done.files, done.damaged, done.remaining) == (1, 1, 0)
    assert minutes() == {("ingress_bytes", 2): 1}
    assert UsageFile.objects.get(state=FileState.DAMAGED).error


def test_rows_of_blocks_that_the_manifest_does_not_name_add_nothing(agent, store):
    entry = agent.entry(T, T + MINUTE_MS, sequences=(0, 1))
    agent.emit(NOON, entry, blocks(0, 1, 2))
    emit(agent, 2, 2)
    ingest_usage(store=store)
    assert minutes() == {("ingress_bytes", number): 1 for number in range(3)}


@pytest.mark.django_db(transaction=True)
def test_a_crash_in_the_middle_adds_nothing_and_the_next_pass_all(agent, store, monkeypatch):
    emit(agent, 0, 3)
    emit(agent, 4, 7)

    def dying(*args, **kwargs):
        absorbing.absorb_files(*args, **kwargs)
        raise OperationalError

    with monkeypatch.context() as patched:
        patched.setattr(ingest, "absorb_files", dying)
        with pytest.raises(OperationalError):
            ingest_usage(store=store)
    assert minutes() == {}
    assert ingest_usage(store=store).files == 2
    assert minutes() == {("ingress_bytes", number): 1 for number in range(8)}


def test_minutes_of_published_days_go_after_eight_days_and_do_not_come_back(agent, store, clock):
    emit(agent, 0, 3)
    ingest_usage(store=store)
    publish_day(NOON.date(), [])
    # A day's minutes go together, at the midnight after their last one is eight days old.
    end = NOON.replace(hour=0) + 9 * DAY
    clock.now = end - MINUTE
    ingest_usage(store=store)
    assert {minute for _, minute in minutes()} == {0, 1, 2, 3}
    clock.now = end
    ingest_usage(store=store)
    assert minutes() == {}
    clock.now = NOON + 10 * DAY
    ingest_usage(store=store)
    with system_scope():
        assert not LaneCoverage.objects.exists()
    emit(agent.twin("agent-2"), 0, 3, at=clock.now)
    assert ingest_usage(store=store).files == 1
    assert minutes() == {}


def test_minutes_stay_until_their_day_is_published(agent, store, clock):
    emit(agent, 0, 3)
    ingest_usage(store=store)
    clock.now = NOON + 30 * DAY
    ingest_usage(store=store)
    assert {minute for _, minute in minutes()} == {0, 1, 2, 3}
    # Nothing of them is added twice meanwhile, however late it comes.
    emit(agent.twin("agent-2"), 0, 4, at=clock.now)
    assert ingest_usage(store=store).files == 1
    assert minutes() == {("ingress_bytes", number): 1 for number in range(5)}
    with system_scope():
        assert month_totals(NOON.date(), ["org_a"]) == {"org_a": {("cl_a", "ingress_bytes"): 5}}
    publish_day(NOON.date(), [])
    ingest_usage(store=store)
    assert minutes() == {}
    with system_scope():
        assert month_totals(NOON.date(), ["org_a"]) == {"org_a": {}}


def test_an_early_roll_up_lets_no_minute_go(agent, store, clock):
    emit(agent, 0, 3)
    ingest_usage(store=store)
    publish_day(NOON.date(), [], early=True)
    clock.now = NOON + 9 * DAY
    ingest_usage(store=store)
    assert {minute for _, minute in minutes()} == {0, 1, 2, 3}


class CountingStore(FolderUsageStore):
    """Says which days were listed."""

    def __init__(self, root):
        super().__init__(root)
        self.days = []

    def list(self, prefix):
        if "day=" in prefix:
            self.days.append(prefix.rstrip("/").rpartition("=")[2])
        return super().list(prefix)


def test_a_look_lists_a_few_days_however_old_the_store_is(agent, store, clock):
    emit(agent, 0, 0, at=NOON - 30 * DAY)
    emit(agent, 1, 1)
    counting = CountingStore(store.root)
    ingest_usage(store=counting)
    assert len(counting.days) == 32
    assert len(minutes()) == 2
    counting.days.clear()
    ingest_usage(store=counting)
    assert counting.days == [f"2026-11-{day}" for day in (17, 18, 19, 20, 21)]
    # After a pause it goes on where it was.
    clock.now = NOON + 20 * DAY
    counting.days.clear()
    ingest_usage(store=counting)
    assert (counting.days[0], counting.days[-1]) == ("2026-11-20", "2026-12-11")
    counting.days.clear()
    ingest_usage(store=counting)
    assert len(counting.days) == 5


def test_a_late_file_is_found_within_three_days_and_later_when_asked_for(agent, store, clock):
    emit(agent, 0, 0)
    ingest_usage(store=store)
    clock.now = NOON + 3 * DAY
    emit(agent, 1, 1)
    assert ingest_usage(store=store).files == 1
    clock.now = NOON + 6 * DAY
    ingest_usage(store=store)
    emit(agent, 2, 2)
    assert ingest_usage(store=store).files == 0
    assert ingest_usage(store=store, since=NOON.date()).files == 1
    assert len(minutes()) == 3


def test_a_pass_that_takes_too_long_is_taken_up_by_the_next(agent, store, monkeypatch):
    monkeypatch.setattr(ingest, "BATCH_FILES", 2)
    for number in range(5):
        emit(agent, number, number)
    state = IngestState.objects.filter(cell=config().cell.id)
    # What it read is taken in, however long that took: so each pass comes further.
    done = ingest_usage(store=store, limit_s=-1)
    assert (done.files, done.remaining) == (2, 3)
    assert state.get().settled_before is None
    assert ingest_usage(store=store).files == 3
    assert state.get().settled_before == NOON.date()
    assert from_ms(state.get().newest_emitted_at_ms) == NOON + 5 * MINUTE
