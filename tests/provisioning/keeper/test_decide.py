"""The keeper's decisions: a table of cases, and properties of every decision."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from provisioning.cell.drivers.base import (
    BrokerObservation,
    BrokerState,
    ClusterObservation,
    Endpoints,
)
from provisioning.cell.keeper.decide import (
    Apply,
    ForgetWake,
    Reading,
    Remove,
    Replace,
    Rules,
    Scrape,
    Stop,
    TakeSample,
    View,
    decide,
)
from provisioning.cell.keeper.records import ClusterPhase, Spec, SpecState, Status, Wake

RULES = Rules()
NOW = 1_000_000_000
IDLE = 60_000
SPEC = Spec(
    cluster_id="cl_a",
    generation=3,
    state=SpecState.ACTIVE,
    scale=1,
    idle_timeout_ms=IDLE,
)
WAKE = Wake(requested_at_ms=NOW - 50, by="gateway con_1", revision=17)
FORGET = ForgetWake(17)
ENDPOINTS = Endpoints("127.0.0.1:1", "127.0.0.1:2", "127.0.0.1:3")


def broker(state, **fields):
    endpoints = ENDPOINTS if state is BrokerState.RUNNING else None
    return BrokerObservation(0, state, name="pid 1", endpoints=endpoints, pid=1, **fields)


RUNS = broker(BrokerState.RUNNING)
STARTS = broker(BrokerState.STARTING)
LOST = replace(RUNS, machine="node-1", lost=True)
STOPS = broker(BrokerState.STOPPING)
WAITS = broker(BrokerState.WAITING, failures=2, message="ended")
CRASHES = broker(BrokerState.WAITING, failures=5, message="ended with status 9")
REFUSES = broker(BrokerState.FAILED, failures=1, message="refused its settings")


def view(phase=None, *brokers, since=NOW - 10_000, **fields):
    status = None if phase is None else Status(3, phase, since)
    fields.setdefault("spec", SPEC)
    return View(
        now_ms=NOW,
        status=status,
        wake=fields.pop("wake", None),
        observed=ClusterObservation("cl_a", brokers),
        **{"busy_ms": NOW, **fields},
    )


IDLE_VIEW = {"applied": True, "reading": Reading(NOW - 5, 0), "busy_ms": NOW - IDLE}
SAMPLED = {**IDLE_VIEW, "idle_ms": NOW - 20, "sampled_ms": NOW - 20}
SUSPENDED = replace(SPEC, state=SpecState.SUSPENDED)
DELETED = replace(SPEC, state=SpecState.DELETED)

CASES = {
    # asleep
    "never started, nobody asks": (view(), [], ClusterPhase.ASLEEP),
    "never started, woken": (view(wake=WAKE), [Apply()], ClusterPhase.STARTING),
    "asleep, woken": (view(ClusterPhase.ASLEEP, wake=WAKE), [Apply()], ClusterPhase.STARTING),
    "asleep, but a start's status was lost": (
        view(ClusterPhase.ASLEEP, STARTS),
        [Apply()],
        ClusterPhase.STARTING,
    ),
    "asleep, an earlier stop still on its way": (
        view(ClusterPhase.ASLEEP, STOPS),
        [],
        ClusterPhase.ASLEEP,
    ),
    "asleep, but it never sleeps": (
        view(ClusterPhase.ASLEEP, spec=replace(SPEC, idle_timeout_ms=0)),
        [Apply()],
        ClusterPhase.STARTING,
    ),
    # starting
    "starting": (
        view(ClusterPhase.STARTING, STARTS, applied=True, wake=WAKE),
        [],
        ClusterPhase.STARTING,
    ),
    "starting, the reply was lost": (
        view(ClusterPhase.STARTING, STARTS),
        [Apply()],
        ClusterPhase.STARTING,
    ),
    "starting, and it serves": (
        view(ClusterPhase.STARTING, RUNS, applied=True, wake=WAKE),
        [FORGET],
        ClusterPhase.RUNNING,
    ),
    # running
    "running, a client": (
        view(ClusterPhase.RUNNING, RUNS, **{**SAMPLED, "reading": Reading(NOW, 1), "busy_ms": NOW}),
        [],
        ClusterPhase.RUNNING,
    ),
    "running, a new keeper": (view(ClusterPhase.RUNNING, RUNS), [Apply()], ClusterPhase.RUNNING),
    "running, its broker died with the keeper": (
        view(ClusterPhase.RUNNING),
        [Apply()],
        ClusterPhase.STARTING,
    ),
    "running, its broker ended": (
        view(ClusterPhase.RUNNING, WAITS, applied=True),
        [],
        ClusterPhase.STARTING,
    ),
    "running, it does not answer": (
        view(ClusterPhase.RUNNING, RUNS, applied=True, unanswered=((0, 15),)),
        [Replace(0)],
        ClusterPhase.RUNNING,
    ),
    "running, it did not answer often": (
        view(ClusterPhase.RUNNING, RUNS, applied=True, unanswered=((0, 14),)),
        [],
        ClusterPhase.RUNNING,
    ),
    # idle
    "idle for long, no sample yet": (
        view(ClusterPhase.RUNNING, RUNS, **IDLE_VIEW),
        [TakeSample()],
        ClusterPhase.RUNNING,
    ),
    "idle for long, the sample began before": (
        view(ClusterPhase.RUNNING, RUNS, **{**SAMPLED, "sampled_ms": NOW - 21}),
        [TakeSample()],
        ClusterPhase.RUNNING,
    ),
    "idle for long, sampled": (
        view(ClusterPhase.RUNNING, RUNS, **SAMPLED),
        [Scrape()],
        ClusterPhase.STOPPING,
    ),
    "idle not for long": (
        view(ClusterPhase.RUNNING, RUNS, **{**SAMPLED, "busy_ms": NOW - IDLE + 1}),
        [],
        ClusterPhase.RUNNING,
    ),
    "idle, but awake only just": (
        view(ClusterPhase.RUNNING, RUNS, since=NOW - 2_999, **SAMPLED),
        [],
        ClusterPhase.RUNNING,
    ),
    "idle, but a wake request": (
        view(ClusterPhase.RUNNING, RUNS, wake=WAKE, **SAMPLED),
        [FORGET],
        ClusterPhase.RUNNING,
    ),
    "the metric is missing": (
        view(ClusterPhase.RUNNING, RUNS, **{**SAMPLED, "reading": Reading(NOW, None)}),
        [],
        ClusterPhase.RUNNING,
    ),
    "no reading": (
        view(ClusterPhase.RUNNING, RUNS, **{**SAMPLED, "reading": None}),
        [],
        ClusterPhase.RUNNING,
    ),
    "idle, but never to sleep": (
        view(ClusterPhase.RUNNING, RUNS, spec=replace(SPEC, idle_timeout_ms=0), **SAMPLED),
        [],
        ClusterPhase.RUNNING,
    ),
    # stopping
    "stopping, not read again": (
        view(ClusterPhase.STOPPING, RUNS, since=NOW - 50, **SAMPLED),
        [Scrape()],
        ClusterPhase.STOPPING,
    ),
    "stopping, read too soon": (
        view(ClusterPhase.STOPPING, RUNS, since=NOW - 104, **SAMPLED),
        [Scrape()],
        ClusterPhase.STOPPING,
    ),
    "stopping, still idle": (
        view(ClusterPhase.STOPPING, RUNS, since=NOW - 105, **SAMPLED),
        [Stop()],
        ClusterPhase.STOPPING,
    ),
    "stopping, a client came": (
        view(ClusterPhase.STOPPING, RUNS, **{**SAMPLED, "reading": Reading(NOW, 2)}),
        [],
        ClusterPhase.RUNNING,
    ),
    "stopping, no number of connections": (
        view(ClusterPhase.STOPPING, RUNS, **{**SAMPLED, "reading": Reading(NOW, None)}),
        [],
        ClusterPhase.RUNNING,
    ),
    "stopping, gateways cannot know": (
        view(ClusterPhase.STOPPING, RUNS, stored=False, **SAMPLED),
        [],
        ClusterPhase.RUNNING,
    ),
    "stopping, woken before the stop": (
        view(ClusterPhase.STOPPING, RUNS, wake=WAKE, **SAMPLED),
        [FORGET],
        ClusterPhase.RUNNING,
    ),
    "stopping, woken after the stop": (
        view(ClusterPhase.STOPPING, STOPS, wake=WAKE),
        [Apply()],
        ClusterPhase.STARTING,
    ),
    "stopping, stopped": (view(ClusterPhase.STOPPING, STOPS), [], ClusterPhase.STOPPING),
    "stopping, gone": (view(ClusterPhase.STOPPING), [], ClusterPhase.ASLEEP),
    "stopping, gone, woken": (
        view(ClusterPhase.STOPPING, wake=WAKE),
        [Apply()],
        ClusterPhase.STARTING,
    ),
    "stopping, it crashed before the stop": (
        view(ClusterPhase.STOPPING, WAITS, applied=True),
        [Stop()],
        ClusterPhase.STOPPING,
    ),
    # failed
    "its settings are refused": (
        view(ClusterPhase.STARTING, REFUSES, applied=True, wake=WAKE),
        [FORGET],
        ClusterPhase.FAILED,
    ),
    "the driver refuses": (view(ClusterPhase.STARTING, refused="no"), [], ClusterPhase.FAILED),
    "it ends again and again": (
        view(ClusterPhase.STARTING, CRASHES, applied=True, wake=WAKE),
        [],
        ClusterPhase.FAILED,
    ),
    "it ends again and again, and is tried": (
        view(ClusterPhase.FAILED, replace(CRASHES, state=BrokerState.STARTING), applied=True),
        [],
        ClusterPhase.FAILED,
    ),
    "failed, and it serves after all": (
        view(ClusterPhase.FAILED, replace(RUNS, failures=5), applied=True, wake=WAKE),
        [FORGET],
        ClusterPhase.RUNNING,
    ),
    "failed, nobody asks": (
        view(ClusterPhase.FAILED, REFUSES, applied=True),
        [],
        ClusterPhase.FAILED,
    ),
    "failed, woken later": (
        view(ClusterPhase.FAILED, REFUSES, applied=True, wake=WAKE),
        [Apply(), FORGET],
        ClusterPhase.STARTING,
    ),
    "failed, woken at once": (
        view(ClusterPhase.FAILED, REFUSES, applied=True, wake=WAKE, since=NOW - 9_999),
        [FORGET],
        ClusterPhase.FAILED,
    ),
    "failed, the clock was set back": (
        view(ClusterPhase.FAILED, REFUSES, applied=True, wake=WAKE, since=NOW + 9_999),
        [Apply(), FORGET],
        ClusterPhase.STARTING,
    ),
    "failed, a new spec": (
        view(ClusterPhase.FAILED, REFUSES, since=NOW, spec=replace(SPEC, generation=4)),
        [Apply()],
        ClusterPhase.STARTING,
    ),
    "failed before this keeper": (view(ClusterPhase.FAILED), [], ClusterPhase.FAILED),
    # may not run
    "suspended": (
        view(ClusterPhase.RUNNING, RUNS, spec=SUSPENDED, wake=WAKE),
        [FORGET, Stop()],
        ClusterPhase.STOPPING,
    ),
    "suspended, it stops": (
        view(ClusterPhase.STOPPING, STOPS, spec=SUSPENDED),
        [],
        ClusterPhase.STOPPING,
    ),
    "suspended, stopped": (
        view(ClusterPhase.STOPPING, spec=SUSPENDED, kept=True),
        [],
        ClusterPhase.ASLEEP,
    ),
    "suspended, woken": (
        view(ClusterPhase.ASLEEP, spec=SUSPENDED, wake=WAKE),
        [FORGET],
        ClusterPhase.ASLEEP,
    ),
    "suspended while it fails": (
        view(ClusterPhase.FAILED, CRASHES, spec=SUSPENDED),
        [Stop()],
        "stopping",
    ),
    "deleted": (
        view(ClusterPhase.RUNNING, RUNS, spec=DELETED, kept=True),
        [Stop()],
        ClusterPhase.STOPPING,
    ),
    "deleted, stopped": (
        view(ClusterPhase.STOPPING, spec=DELETED, kept=True, removable=True),
        [],
        ClusterPhase.ASLEEP,
    ),
    # machines and answers
    "its machine is lost": (
        view(ClusterPhase.RUNNING, LOST, applied=True),
        [Replace(0)],
        "running",
    ),
    "lost as it starts": (
        view(ClusterPhase.STARTING, replace(LOST, state=BrokerState.STARTING), applied=True),
        [Replace(0)],
        ClusterPhase.STARTING,
    ),
    "lost as it stops": (
        view(ClusterPhase.STOPPING, replace(LOST, state=BrokerState.STOPPING)),
        [],
        ClusterPhase.STOPPING,
    ),
    "lost, replaced a moment ago": (
        view(ClusterPhase.RUNNING, LOST, applied=True, not_replaceable=frozenset({0})),
        [],
        ClusterPhase.RUNNING,
    ),
    "nobody answers the keeper": (
        view(ClusterPhase.RUNNING, RUNS, applied=True, unanswered=((0, 20),), doubtful=True),
        [],
        ClusterPhase.RUNNING,
    ),
    "nobody answers, but of this one it is known": (
        view(ClusterPhase.RUNNING, LOST, applied=True, unanswered=((0, 20),), doubtful=True),
        [Replace(0)],
        ClusterPhase.RUNNING,
    ),
    # no spec
    "purged, it runs": (view(ClusterPhase.RUNNING, RUNS, spec=None, kept=True), [Stop()], None),
    "purged, something is kept": (
        view(ClusterPhase.ASLEEP, spec=None, kept=True, removable=True, wake=WAKE),
        [Remove(), FORGET],
        None,
    ),
    "unknown, and nobody purged it": (
        view(ClusterPhase.ASLEEP, spec=None, kept=True, wake=WAKE),
        [FORGET],
        None,
    ),
    "purged": (view(spec=None), [], None),
    # the keeper ends
    "leaving": (
        view(ClusterPhase.RUNNING, RUNS, wake=WAKE, leaving=True),
        [Stop()],
        ClusterPhase.STOPPING,
    ),
    "leaving, stopped": (
        view(ClusterPhase.STOPPING, wake=WAKE, leaving=True),
        [],
        ClusterPhase.ASLEEP,
    ),
    "leaving, failed": (view(ClusterPhase.FAILED, leaving=True), [], ClusterPhase.FAILED),
}


@pytest.mark.parametrize("name", CASES)
def test_table(name):
    given_view, actions, phase = CASES[name]
    decision = decide(given_view, RULES)
    assert list(decision.actions) == actions
    assert (decision.status and decision.status.phase) == phase


@pytest.mark.parametrize(
    ("name", "before", "expected"),
    [
        ("asleep, woken", "", "gateway con_1"),
        ("stopping, woken after the stop", "before", "gateway con_1"),
        ("failed, a new spec", "before", "generation 4"),
        ("failed, woken later", "before", "gateway con_1"),
        ("stopping, woken before the stop", "before", "before"),
        ("it ends again and again", "before", "before"),
        ("failed, and it serves after all", "", "gateway con_1"),
        ("leaving", "before", "before"),
        ("stopping, gone", "before", ""),
    ],
)
def test_a_status_says_for_whom_brokers_were_started_while_they_run(name, before, expected):
    given_view = CASES[name][0]
    assert given_view.status is not None
    known = replace(given_view, status=replace(given_view.status, started_for=before))
    assert status_of(known).started_for == expected


def status_of(given_view):
    """The status of a decision about a cluster that has a spec, and so a status."""
    status = decide(given_view, RULES).status
    assert status is not None
    return status


def test_not_knowing_decides_nothing():
    unknown = view(ClusterPhase.RUNNING, RUNS, **SAMPLED)
    unknown = replace(unknown, observed=ClusterObservation("cl_a", known=False))
    decision = decide(unknown, RULES)
    assert decision.actions == ()
    assert decision.status == unknown.status


def test_a_status_has_the_brokers_that_serve():
    status = status_of(view(ClusterPhase.STARTING, RUNS, applied=True))
    described = status.brokers[0]
    assert (described.kafka, described.metrics, described.link) == (
        ENDPOINTS.kafka,
        ENDPOINTS.metrics,
        ENDPOINTS.link,
    )
    assert (described.slot, described.pid) == (0, 1)
    assert status.observed_generation == 3
    assert status.since_ms == NOW
    assert status_of(view(ClusterPhase.RUNNING, STARTS, applied=True)).brokers == ()


def test_since_is_kept_within_a_phase():
    assert status_of(view(ClusterPhase.RUNNING, RUNS, applied=True)).since_ms == NOW - 10_000


def test_restarts_count_since_it_woke():
    running = view(ClusterPhase.RUNNING, RUNS, applied=True, restarts=4)
    running = replace(
        running,
        status=replace(running.status, restarts=2),
        observed=replace(running.observed, restarts=5),
    )
    assert status_of(running).restarts == 3
    asleep = replace(running, status=replace(running.status, phase=ClusterPhase.ASLEEP))
    assert status_of(asleep).restarts == 1


def test_all_slots_of_the_scale_are_asked_for():
    two = replace(SPEC, scale=2)
    partly = view(ClusterPhase.RUNNING, RUNS, spec=two, applied=True)
    assert Apply() in decide(partly, RULES).actions


BROKERS = st.builds(
    broker,
    st.sampled_from(BrokerState),
    failures=st.integers(0, 6),
    message=st.sampled_from(["", "ended"]),
)
VIEWS = st.builds(
    view,
    st.none() | st.sampled_from(ClusterPhase),
    *[],
    since=st.integers(NOW - 100_000, NOW + 100),
    spec=st.none()
    | st.builds(
        Spec,
        st.just("cl_a"),
        st.integers(1, 5),
        st.sampled_from(SpecState),
        st.integers(1, 3),
        st.sampled_from([0, 1, IDLE]),
    ),
    wake=st.none() | st.just(WAKE),
    stored=st.booleans(),
    applied=st.booleans(),
    refused=st.sampled_from(["", "no"]),
    reading=st.none()
    | st.builds(Reading, st.integers(NOW - 1000, NOW), st.none() | st.integers(0, 2)),
    busy_ms=st.integers(NOW - 2 * IDLE, NOW),
    idle_ms=st.none() | st.integers(NOW - 1000, NOW),
    sampled_ms=st.integers(NOW - 2 * IDLE, NOW),
    asked_ms=st.integers(NOW - 2 * RULES.retry_failed_ms, NOW),
    unanswered=st.sampled_from([(), ((0, 3),), ((0, 20), (1, 20))]),
    kept=st.booleans(),
    removable=st.booleans(),
    leaving=st.booleans(),
).flatmap(
    lambda v: st.dictionaries(st.integers(0, 3), BROKERS, max_size=4).map(
        lambda brokers: replace(
            v,
            observed=ClusterObservation(
                "cl_a", tuple(replace(brokers[slot], slot=slot) for slot in sorted(brokers))
            ),
        )
    )
)


@given(VIEWS)
def test_what_may_not_run_is_never_started(v):
    allowed = v.spec is not None and v.spec.state is SpecState.ACTIVE and not v.leaving
    if not allowed:
        assert Apply() not in decide(v, RULES).actions


@given(VIEWS)
def test_a_broker_with_clients_is_stopped_only_where_it_may_not_run(v):
    serves = any(b.state is BrokerState.RUNNING for b in v.observed.brokers)
    known_idle = v.reading is not None and v.reading.connections == 0
    allowed = v.spec is not None and v.spec.state is SpecState.ACTIVE and not v.leaving
    if allowed and serves and not known_idle:
        assert Stop() not in decide(v, RULES).actions


@given(VIEWS)
def test_gateways_know_before_an_idle_cluster_is_stopped(v):
    allowed = v.spec is not None and v.spec.state is SpecState.ACTIVE and not v.leaving
    serves = any(b.state is BrokerState.RUNNING for b in v.observed.brokers)
    if allowed and serves and Stop() in decide(v, RULES).actions:
        assert v.phase is ClusterPhase.STOPPING
        assert v.stored
        assert v.wake is None
        assert v.reading.taken_ms >= v.status.since_ms + RULES.stopping_grace_ms


@given(VIEWS)
def test_files_go_only_once_nothing_runs(v):
    if Remove() in decide(v, RULES).actions:
        assert v.observed.brokers == ()
        assert v.spec is None
        assert v.removable


@given(VIEWS)
def test_a_wake_request_is_forgotten_only_where_it_was_answered(v):
    decision = decide(v, RULES)
    if v.wake is None:
        assert not any(isinstance(action, ForgetWake) for action in decision.actions)
    elif FORGET in decision.actions and v.spec is not None:
        may_not = v.spec.state is not SpecState.ACTIVE
        serves = any(b.state is BrokerState.RUNNING for b in v.observed.brokers)
        failed = ClusterPhase.FAILED in {v.phase, status_of(v).phase}
        assert may_not or serves or failed


@given(VIEWS)
def test_start_and_stop_exclude_each_other(v):
    actions = decide(v, RULES).actions
    assert len({type(a) for a in actions} & {Apply, Stop, Remove}) <= 1
    assert len(set(actions)) == len(actions)


@given(VIEWS)
def test_a_status_has_the_generation_and_the_time_of_its_phase(v):
    status = decide(v, RULES).status
    assert (status is None) == (v.spec is None)
    if status is not None and v.status is not None and status.phase is v.status.phase:
        assert status.since_ms == v.status.since_ms
    if status is not None and status.phase is ClusterPhase.RUNNING:
        assert status.brokers


@given(VIEWS, st.integers(0, 3))
def test_a_cluster_settles_where_the_driver_does_every_action(v, crashes):
    """By its own decisions a cluster comes to rest: running, asleep, failed or gone."""
    world = World(v, crashes)
    for _ in range(200):
        if world.step():
            break
    else:
        raise AssertionError(world.view)
    assert world.view.wake is None or v.leaving


class World:
    """A simulated cluster: its driver does every action, and there are no clients.

    Steps are 1 s.
    """

    def __init__(self, v, crashes):
        self.view = replace(v, stored=True, unanswered=())
        self.crashes = crashes

    def step(self):
        """Takes a step. Returns True where nothing was to be done and nothing will change."""
        v = self.view
        decision = decide(v, RULES)
        changes = {"now_ms": v.now_ms + 1000, "status": decision.status, "refused": ""}
        for action in decision.actions:
            changes |= self.done(action)
        if not decision.actions:
            changes |= self.moved()
        before = (v.status, v.observed, ())
        still = before == (decision.status, changes.get("observed", v.observed), decision.actions)
        self.view = replace(v, **changes)
        return still and self.at_rest()

    def at_rest(self):
        brokers = self.view.observed.brokers
        sleeps = self.view.spec is not None and self.view.spec.idle_timeout_ms > 0
        states = {broker.state for broker in brokers}
        return states <= {BrokerState.FAILED} or (states == {BrokerState.RUNNING} and not sleeps)

    def done(self, action):
        v = self.view
        match action:
            case Apply():
                states = {b.slot: b for b in v.observed.brokers}
                slots = range(v.spec.scale)
                kept = [self.applied(states.pop(slot, None), slot) for slot in slots]
                surplus = [replace(b, state=BrokerState.STOPPING) for b in states.values()]
                return {
                    "applied": True,
                    "asked_ms": v.now_ms,
                    "observed": self.observed(*kept, *surplus),
                    "kept": True,
                }
            case Stop():
                stops = tuple(replace(b, state=BrokerState.STOPPING) for b in v.observed.brokers)
                return {"applied": False, "observed": self.observed(*stops)}
            case Remove():
                return {"kept": False, "observed": self.observed()}
        readings = {"reading": Reading(v.now_ms + 1000, 0), "sampled_ms": v.now_ms}
        readings["idle_ms"] = v.now_ms
        return {"wake": None} if isinstance(action, ForgetWake) else readings

    def applied(self, before, slot):
        if before is None or before.state in {BrokerState.FAILED, BrokerState.STOPPING}:
            return replace(STARTS, slot=slot)
        return before

    def moved(self):
        """The observation after a second without any action."""
        brokers = []
        for broker in self.view.observed.brokers:
            if broker.state in {BrokerState.STARTING, BrokerState.WAITING}:
                if self.crashes:
                    self.crashes -= 1
                    brokers.append(replace(WAITS, slot=broker.slot))
                else:
                    brokers.append(replace(RUNS, slot=broker.slot))
            elif broker.state is not BrokerState.STOPPING:
                brokers.append(broker)
        reading = Reading(self.view.now_ms, 0)
        return {"observed": self.observed(*brokers), "reading": reading}

    def observed(self, *brokers):
        return ClusterObservation("cl_a", brokers)
