"""When deletions are held, and how often a slot's broker is replaced."""

import json
from dataclasses import asdict

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
    guard_after,
)
from provisioning.cell.keeper.health import (
    DAMAGED_MAX,
    DAMAGED_MAX_CLUSTER,
    START_MS,
    Beat,
    beat_of,
    health_of_cell,
    with_damage,
)
from provisioning.cell.keeper.records import ClusterPhase, Status

RULES = GuardRules()
NOW = 1_000_000_000


def after(guard, *looks, expected=100, every_ms=1000):
    """The guard after one look per second, which found these numbers of unhealthy brokers."""
    for number, unhealthy in enumerate(looks):
        now_ms = NOW + number * every_ms
        guard = guard_after(
            guard, expected=expected, unhealthy=unhealthy, now_ms=now_ms, rules=RULES
        )
    return guard


def test_a_short_failure_holds_nothing():
    assert not after(Guard(), *[90] * 10).held
    assert after(Guard(), *[90] * 11).held
    assert not after(Guard(), *[90] * 10, 0, *[90] * 10).held


def test_a_short_recovery_releases_nothing():
    held = Guard(held=True)
    assert after(held, *[0] * 60).held
    assert not after(held, *[0] * 61).held
    # A number just below the one that held deletions is not low enough.
    assert after(held, *[15] * 200).held
    assert not after(held, *[10] * 61).held


def test_share_and_number_hold_and_few_do_not():
    assert not after(Guard(), *[20] * 20).held
    assert after(Guard(), *[21] * 20).held
    assert after(Guard(), *[51] * 20, expected=10_000).held
    assert not after(Guard(), *[50] * 20, expected=10_000).held
    # In a cell with few brokers the cluster that fails can be deleted.
    assert not after(Guard(), *[2] * 20, expected=2).held
    assert not after(Guard(held=True), *[1] * 61, expected=2).held


def test_a_clock_that_is_set_back_begins_anew():
    guard = guard_after(Guard(), expected=10, unhealthy=9, now_ms=NOW, rules=RULES)
    guard = guard_after(guard, expected=10, unhealthy=9, now_ms=NOW - 3_600_000, rules=RULES)
    assert guard == Guard(held=False, since_ms=NOW - 3_600_000)


@given(st.lists(st.integers(0, 1000), min_size=1, max_size=200), st.integers(1, 10_000))
def test_it_turns_only_for_a_reason(looks, hours):
    before = after(Guard(), *looks, expected=100)
    now_ms = NOW + hours * 3_600_000
    one = guard_after(before, expected=100, unhealthy=0, now_ms=now_ms, rules=RULES)
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
    # It ends as they answer again, but not as others go to sleep.
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
    return beat_of(
        status, observed, scale=scale, unanswered=silent, absent={0: since_ms}, now_ms=NOW
    )


def test_what_should_run_and_does_not_is_unhealthy():
    assert beat(ClusterPhase.RUNNING, RUNS) == Beat(1, 0)
    assert beat(ClusterPhase.RUNNING, RUNS, scale=3) == Beat(3, 2)
    assert beat(ClusterPhase.RUNNING, RUNS, silent=5) == Beat(1, 1)
    assert beat(ClusterPhase.FAILED) == Beat(1, 1)
    assert beat(ClusterPhase.STARTING, since_ms=NOW - START_MS + 1) == Beat(1, 0)
    assert beat(ClusterPhase.STARTING, since_ms=NOW - START_MS) == Beat(1, 1)
    assert beat(ClusterPhase.ASLEEP) == Beat(0, 0)
    assert beat(ClusterPhase.RUNNING, known=False) == Beat(known=False)
    lost = BrokerObservation(0, BrokerState.RUNNING, machine="node-1", lost=True)
    assert beat(ClusterPhase.RUNNING, lost) == Beat(1, 1, frozenset({"node-1"}))


def test_the_health_of_a_cell_has_numbers_machines_and_orphans():
    beats = [Beat(1, 1, frozenset({"node-2", "node-1"})), Beat(2, 0), Beat()]
    health = health_of_cell(beats, Guard(held=True), platform="", orphans=["cl_x"], now_ms=NOW)
    assert (health.wanted, health.unhealthy, health.machines) == (3, 1, ("node-1", "node-2"))
    assert (health.held, health.reason) == (True, "1 of 3 brokers that should run do not serve")
    assert health.orphans == ("cl_x",)
    # The size of a cell in SQLite, or of an etcd that does not report it.
    assert (health.etcd_file_bytes, health.etcd_in_use_bytes, health.etcd_quota_bytes) == (0, 0, 0)


def test_the_health_of_a_cell_names_damaged_batches_and_says_where_some_may_lack():
    well = health_of_cell([], Guard(), platform="", orphans=[], now_ms=NOW)
    many = [("t", number, 5, "many") for number in range(DAMAGED_MAX_CLUSTER + 1)]
    damaged = {"cl_c": [("t", 0, 94, "one")], "cl_b": [], "cl_d": None, "cl_a": many}
    health = with_damage(well, damaged)
    of_a = [entry for entry in health.damaged if entry[0] == "cl_a"]
    assert of_a == [("cl_a", *batch[:3]) for batch in many[:DAMAGED_MAX_CLUSTER]]
    assert [entry for entry in health.damaged if entry not in of_a] == [("cl_c", "t", 0, 94)]
    assert health.damaged_topics == ("many",) * DAMAGED_MAX_CLUSTER + ("one",)
    assert health.damage_unknown == ("cl_a", "cl_d")
    # A cell's report stays within what a record of the metadata store takes.
    crowd = {
        f"cl_{n:020}": [("x" * 249, p, 2**63 - 1, "i" * 22) for p in range(20)] for n in range(200)
    }
    report = with_damage(well, crowd)
    assert len(report.damaged) == DAMAGED_MAX
    assert len(json.dumps(asdict(report))) < 700 * 1024


def test_the_health_of_a_cell_has_the_size_of_its_etcd():
    etcd = MemberStatus(file_bytes=70, in_use_bytes=20, quota_bytes=100)
    health = health_of_cell([], Guard(), platform="", orphans=[], now_ms=NOW, etcd=etcd)
    assert (health.etcd_file_bytes, health.etcd_in_use_bytes, health.etcd_quota_bytes) == (
        70,
        20,
        100,
    )
