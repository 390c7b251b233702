"""The keeper's decisions about a cluster of three brokers, of which not all serve."""

from dataclasses import replace

import pytest

from provisioning.cell.drivers.base import (
    BrokerObservation,
    BrokerState,
    ClusterObservation,
    Endpoints,
)
from provisioning.cell.keeper.decide import (
    Apply,
    Reading,
    Replace,
    Rules,
    Scrape,
    Stop,
    TakeSample,
    View,
    counts_all_clients,
    decide,
)
from provisioning.cell.keeper.health import START_MS, Beat, beat_of
from provisioning.cell.keeper.records import ClusterPhase, Spec, SpecState, Status, Wake

RULES = Rules()
NOW = 1_000_000_000
IDLE = 60_000
SPEC = Spec("cl_a", generation=3, state=SpecState.ACTIVE, scale=3, idle_timeout_ms=IDLE)
ENDPOINTS = Endpoints("10.0.0.1:1", "10.0.0.1:2", "10.0.0.1:3")
RUNNING, STARTING, STOPPING = ClusterPhase.RUNNING, ClusterPhase.STARTING, ClusterPhase.STOPPING
# Pauses between attempts to start what was refused.
RECENTLY, LONG_AGO = NOW - RULES.retry_failed_ms + 1, NOW - RULES.retry_failed_ms


def serves(slot):
    name = f"broker-{slot}-a.0"
    return BrokerObservation(slot, BrokerState.RUNNING, name, ENDPOINTS, machine="node-1")


def starts(slot, **fields):
    return BrokerObservation(slot, BrokerState.STARTING, machine="node-1", **fields)


def crashes(slot, state=BrokerState.WAITING):
    message = "ended with status 9"
    return BrokerObservation(slot, state, failures=RULES.failures_max, message=message)


def refuses(slot):
    return BrokerObservation(slot, BrokerState.FAILED, message="refused its settings")


def stops(slot):
    return BrokerObservation(slot, BrokerState.STOPPING, machine="node-1")


def pending(slot):
    return BrokerObservation(slot, BrokerState.STARTING, message="no node has room")


def view(phase, *brokers, since=NOW - 10_000, **fields):
    return View(
        now_ms=NOW,
        spec=fields.pop("spec", SPEC),
        status=Status(3, phase, since),
        wake=fields.pop("wake", None),
        observed=ClusterObservation("cl_a", brokers),
        **{"applied": True, "busy_ms": NOW, **fields},
    )


ALL = (serves(0), serves(1), serves(2))
IDLE_VIEW = {
    "reading": Reading(NOW - 5, 0),
    "busy_ms": NOW - IDLE,
    "idle_ms": NOW - 20,
    "sampled_ms": NOW - 20,
}

CASES = {
    "all serve": (view(RUNNING, *ALL), [], RUNNING),
    "the first one serves": (view(STARTING, serves(0), starts(1), starts(2)), [], RUNNING),
    "none serves yet": (view(STARTING, starts(0), starts(1), starts(2)), [], STARTING),
    "one ended": (
        view(RUNNING, serves(0), BrokerObservation(1, BrokerState.WAITING), serves(2)),
        [],
        RUNNING,
    ),
    "one is missing": (view(RUNNING, serves(0), serves(2)), [Apply()], RUNNING),
    "one is missing, and the driver refuses": (
        view(RUNNING, serves(0), serves(2), refused="no quota", asked_ms=RECENTLY),
        [],
        RUNNING,
    ),
    "one is missing, and the driver refused a while ago": (
        view(RUNNING, serves(0), serves(2), refused="no quota", asked_ms=LONG_AGO),
        [Apply()],
        RUNNING,
    ),
    "one ends again and again": (view(RUNNING, serves(0), crashes(1), serves(2)), [], RUNNING),
    "one refused its settings": (
        view(RUNNING, serves(0), refuses(1), serves(2), asked_ms=RECENTLY),
        [],
        RUNNING,
    ),
    "one refused its settings a while ago": (
        view(RUNNING, serves(0), refuses(1), serves(2), asked_ms=LONG_AGO),
        [Apply()],
        RUNNING,
    ),
    "one refused its settings, and the clock was set back": (
        view(RUNNING, serves(0), refuses(1), serves(2), asked_ms=NOW + 1),
        [Apply()],
        RUNNING,
    ),
    "one refused its settings, and the spec is new": (
        view(RUNNING, serves(0), refuses(1), asked_ms=RECENTLY, spec=replace(SPEC, generation=4)),
        [Apply()],
        RUNNING,
    ),
    "one refused its settings, another is missing": (
        view(RUNNING, serves(0), refuses(1), asked_ms=RECENTLY),
        [Apply()],
        RUNNING,
    ),
    "one refused its settings, the others start": (
        view(STARTING, starts(0), refuses(1), starts(2), asked_ms=RECENTLY),
        [],
        STARTING,
    ),
    "one ends again and again, the others start": (
        view(STARTING, starts(0), crashes(1), starts(2)),
        [],
        STARTING,
    ),
    "all end again and again, or refuse": (
        view(STARTING, crashes(0), crashes(1, BrokerState.STARTING), refuses(2)),
        [],
        ClusterPhase.FAILED,
    ),
    "all failed, and one serves after all": (
        view(ClusterPhase.FAILED, crashes(0), serves(1), crashes(2)),
        [],
        RUNNING,
    ),
    "all failed, and one is started anew": (
        view(ClusterPhase.FAILED, crashes(0), starts(1), refuses(2), asked_ms=RECENTLY),
        [],
        STARTING,
    ),
    # machines and answers
    "one does not answer": (view(RUNNING, *ALL, unanswered=((1, 15),)), [Replace(1)], RUNNING),
    "a machine with two is lost": (
        view(RUNNING, *(replace(b, lost=b.slot > 0) for b in ALL)),
        [Replace(1), Replace(2)],
        RUNNING,
    ),
    "one that stops is lost": (
        view(RUNNING, *ALL[:2], replace(stops(2), lost=True), spec=replace(SPEC, scale=2)),
        [],
        RUNNING,
    ),
    # another scale
    "a smaller scale": (
        view(RUNNING, *ALL, applied=False, spec=replace(SPEC, scale=1, generation=4)),
        [Apply()],
        RUNNING,
    ),
    "a smaller scale, the highest stop": (
        view(RUNNING, serves(0), stops(1), stops(2), spec=replace(SPEC, scale=1)),
        [],
        RUNNING,
    ),
    "a smaller scale, and the only one left ended": (
        view(
            RUNNING,
            BrokerObservation(0, BrokerState.WAITING),
            stops(2),
            spec=replace(SPEC, scale=1),
        ),
        [],
        STARTING,
    ),
    "a larger scale": (
        view(RUNNING, *ALL, applied=False, spec=replace(SPEC, scale=5, generation=4)),
        [Apply()],
        RUNNING,
    ),
    # sleep and wake
    "idle": (view(RUNNING, *ALL, **IDLE_VIEW), [Scrape()], STOPPING),
    "idle, but for one that stops": (
        view(RUNNING, *ALL[:2], stops(2), spec=replace(SPEC, scale=2), **IDLE_VIEW),
        [],
        RUNNING,
    ),
    "idle, and one starts": (view(RUNNING, *ALL[:2], starts(2), **IDLE_VIEW), [], RUNNING),
    "idle, and one waits for a machine": (
        view(RUNNING, *ALL[:2], pending(2), **IDLE_VIEW),
        [Scrape()],
        STOPPING,
    ),
    "idle, and one has refused its settings": (
        view(RUNNING, *ALL[:2], refuses(2), asked_ms=RECENTLY, **{**IDLE_VIEW, "idle_ms": None}),
        [TakeSample()],
        RUNNING,
    ),
    "idle, and one gives no number": (
        view(RUNNING, *ALL, **{**IDLE_VIEW, "reading": Reading(NOW - 5, None, 0)}),
        [],
        RUNNING,
    ),
    "still idle": (view(STOPPING, *ALL, since=NOW - 200, **IDLE_VIEW), [Stop()], STOPPING),
    "one has stopped": (view(STOPPING, stops(0), stops(2), applied=False), [], STOPPING),
    "one ended before the stop": (
        view(STOPPING, stops(0), BrokerObservation(1, BrokerState.WAITING), stops(2)),
        [Stop()],
        STOPPING,
    ),
    "all have stopped": (view(STOPPING, applied=False), [], ClusterPhase.ASLEEP),
    "woken while two stop": (
        view(STOPPING, stops(0), stops(2), applied=False, wake=Wake(NOW, "gateway", 1)),
        [Apply()],
        STARTING,
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_table(name):
    given_view, actions, phase = CASES[name]
    decision = decide(given_view, RULES)
    assert list(decision.actions) == actions
    assert decision.status is not None
    assert decision.status.phase == phase


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("all serve", ""),
        ("one ended", ""),
        ("one ends again and again", "broker 1: ended with status 9"),
        ("one refused its settings", "broker 1: refused its settings"),
        ("one is missing, and the driver refuses", "no quota"),
    ],
)
def test_a_cluster_that_runs_says_why_a_broker_does_not(name, message):
    status = decide(CASES[name][0], RULES).status
    assert status is not None
    assert status.message == message


def test_a_status_has_those_that_serve_and_their_connections():
    given_view = view(RUNNING, serves(0), starts(1), serves(2), reading=Reading(NOW, None, 7))
    status = decide(given_view, RULES).status
    assert status is not None
    assert [broker.slot for broker in status.brokers] == [0, 2]
    assert status.connections == 7


@pytest.mark.parametrize(
    ("brokers", "counted"),
    [
        ((), False),
        (ALL, True),
        ((refuses(0), crashes(1)), False),
        ((serves(0), refuses(1), crashes(2)), True),
        ((serves(0), pending(1)), True),
        ((serves(0), starts(1)), False),
        ((serves(0), replace(pending(1), pid=7)), False),
        ((serves(0), stops(1)), False),
    ],
)
def test_a_process_that_does_not_serve_may_have_clients(brokers, counted):
    assert counts_all_clients(brokers) is counted


def beat(phase, *brokers, absent=None):
    return beat_of(
        Status(1, phase, NOW - 2 * START_MS),
        ClusterObservation("cl_a", brokers),
        scale=3,
        unanswered={1: 5},
        absent=absent or {},
        now_ms=NOW,
    )


def test_a_broker_has_a_while_to_serve_before_it_is_unhealthy():
    lately, long_ago = NOW - START_MS + 1, NOW - START_MS
    assert beat(RUNNING, serves(0), starts(2), absent={1: lately, 2: lately}) == Beat(3, 0)
    assert beat(RUNNING, serves(0), starts(2), absent={1: long_ago, 2: lately}) == Beat(3, 1)
    assert beat(RUNNING, serves(0), refuses(2), absent={1: lately, 2: lately}) == Beat(3, 1)
    assert beat(ClusterPhase.FAILED, crashes(0), absent={0: lately}) == Beat(3, 3)
    # One that is observed to serve and does not answer counts at once.
    assert beat(RUNNING, *ALL) == Beat(3, 1)
