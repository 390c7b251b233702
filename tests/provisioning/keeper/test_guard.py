"""When deletions are held, and how often a slot's broker is replaced: pure."""

from hypothesis import given
from hypothesis import strategies as st

from brokers.etcd import MemberStatus
from provisioning.cell.drivers.base import BrokerObservation, BrokerState, ClusterObservation
from provisioning.cell.keeper.guard import (
    PAUSE_MS,
    Crowd,
    Guard,
    GuardRules,
    Replaced,
    guarded,
)
from provisioning.cell.keeper.health import START_MS, Beat, beat_of, health_of_cell
from provisioning.cell.keeper.records import Phase, Status

RULES = GuardRules()
NOW = 1_000_000_000


def after(guard, *looks, wanted=100, every_ms=1000):
    """The guard after looks that found so many unhealthy brokers, one a second."""
    for number, unhealthy in enumerate(looks):
        now_ms = NOW + number * every_ms
        guard = guarded(guard, wanted=wanted, unhealthy=unhealthy, now_ms=now_ms, rules=RULES)
    return guard


def test_a_moments_trouble_holds_nothing():
    assert not after(Guard(), *[90] * 10).held
    assert after(Guard(), *[90] * 11).held
    assert not after(Guard(), *[90] * 10, 0, *[90] * 10).held


def test_a_moments_peace_releases_nothing():
    held = Guard(held=True)
    assert after(held, *[0] * 60).held
    assert not after(held, *[0] * 61).held
    # Just below where it began is not below enough.
    assert after(held, *[15] * 200).held
    assert not after(held, *[10] * 61).held


def test_share_and_number_hold_and_few_do_not():
    assert not after(Guard(), *[20] * 20).held
    assert after(Guard(), *[21] * 20).held
    assert after(Guard(), *[51] * 20, wanted=10_000).held
    assert not after(Guard(), *[50] * 20, wanted=10_000).held
    # On one machine: the cluster that fails can be deleted.
    assert not after(Guard(), *[2] * 20, wanted=2).held
    assert not after(Guard(held=True), *[1] * 61, wanted=2).held


def test_a_clock_that_is_set_back_begins_anew():
    guard = guarded(Guard(), wanted=10, unhealthy=9, now_ms=NOW, rules=RULES)
    guard = guarded(guard, wanted=10, unhealthy=9, now_ms=NOW - 3_600_000, rules=RULES)
    assert guard == Guard(held=False, since_ms=NOW - 3_600_000)


@given(st.lists(st.integers(0, 1000), min_size=1, max_size=200), st.integers(1, 10_000))
def test_it_turns_only_for_a_reason(looks, hours):
    before = after(Guard(), *looks, wanted=100)
    now_ms = NOW + hours * 3_600_000
    one = guarded(before, wanted=100, unhealthy=0, now_ms=now_ms, rules=RULES)
    assert before.held or not one.held


def test_pauses_between_replacements_grow_and_are_forgiven():
    replaced, at_ms, pauses = Replaced(1, NOW), NOW, []
    for _ in range(8):
        begun_ms = at_ms
        while not replaced.due(at_ms):
            at_ms += 1000
        pauses.append(at_ms - begun_ms)
        replaced = replaced.again(at_ms)
    assert pauses[:3] == [10_000, 20_000, 40_000]
    assert pauses[-1] == PAUSE_MS[1]
    assert replaced.again(at_ms + 600_000).count == 1
    assert replaced.due(at_ms - 1)


def test_many_that_do_not_answer_are_no_coincidence():
    crowd = Crowd()
    looks = []
    for number in range(10):
        crowd.note(f"cl_{number}", running=1, silent=0)
    for number in range(6):
        crowd.note(f"cl_{number}", running=1, silent=1)
        looks.append(crowd.suspicious)
    assert looks == [False] * 5 + [True]
    # As they come back it ends; that others go to sleep makes it no better.
    crowd.note("cl_0", running=1, silent=0)
    looks.append(crowd.suspicious)
    for number in range(6, 10):
        crowd.note(f"cl_{number}", running=0, silent=0)
    looks.append(crowd.suspicious)
    assert looks[6:] == [False, True]


RUNS = BrokerObservation(0, BrokerState.RUNNING, "pod-a", machine="node-1")


def beat(phase, *brokers, since_ms=0, scale=1, known=True, **unanswered):
    observed = ClusterObservation("cl_a", tuple(brokers), known=known)
    status = Status(1, phase, since_ms)
    silent = {0: unanswered.get("silent", 0)}
    return beat_of(status, observed, scale=scale, unanswered=silent, now_ms=NOW)


def test_what_should_run_and_does_not_is_unhealthy():
    assert beat(Phase.RUNNING, RUNS) == Beat(1, 0)
    assert beat(Phase.RUNNING, RUNS, scale=3) == Beat(3, 2)
    assert beat(Phase.RUNNING, RUNS, silent=5) == Beat(1, 1)
    assert beat(Phase.FAILED) == Beat(1, 1)
    assert beat(Phase.STARTING, since_ms=NOW - START_MS + 1) == Beat(1, 0)
    assert beat(Phase.STARTING, since_ms=NOW - START_MS) == Beat(1, 1)
    assert beat(Phase.ASLEEP) == Beat(0, 0)
    assert beat(Phase.RUNNING, known=False) == Beat(known=False)
    lost = BrokerObservation(0, BrokerState.RUNNING, machine="node-1", lost=True)
    assert beat(Phase.RUNNING, lost) == Beat(1, 1, frozenset({"node-1"}))


def test_a_cell_is_told_of_in_numbers():
    beats = [Beat(1, 1, frozenset({"node-2", "node-1"})), Beat(2, 0), Beat()]
    told = health_of_cell(beats, Guard(held=True), platform="", orphans=["cl_x"], now_ms=NOW)
    assert (told.wanted, told.unhealthy, told.machines) == (3, 1, ("node-1", "node-2"))
    assert (told.held, told.reason) == (True, "1 of 3 brokers that should run do not serve")
    assert told.orphans == ("cl_x",)
    # Of a cell in SQLite, or of one whose etcd does not tell.
    assert (told.etcd_file_bytes, told.etcd_in_use_bytes, told.etcd_quota_bytes) == (0, 0, 0)


def test_a_cell_is_told_of_with_the_size_of_its_etcd():
    etcd = MemberStatus(file_bytes=70, in_use_bytes=20, quota_bytes=100)
    told = health_of_cell([], Guard(), platform="", orphans=[], now_ms=NOW, etcd=etcd)
    assert (told.etcd_file_bytes, told.etcd_in_use_bytes, told.etcd_quota_bytes) == (70, 20, 100)
