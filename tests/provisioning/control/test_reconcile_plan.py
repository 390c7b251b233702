"""The plan of a reconcile, by properties: from a desired and an observed cluster to actions."""

from dataclasses import dataclass, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from brokers.metadata_records import (
    BrokerStatus,
    ClusterSpec,
    ClusterStatus,
    Phase,
    TrafficLimit,
)
from provisioning.choices import OperationType
from provisioning.reconciling import plan as reconcile
from provisioning.reconciling.plan import DesiredCluster, Observed, RunningOperation, plan_actions

BROKER = BrokerStatus(slot=0, link="", kafka="127.0.0.1:1", metrics="")


def spec(generation=1, state="active"):
    return ClusterSpec(
        id="cl_x",
        name="orders",
        organization_id="org_x",
        generation=generation,
        state=state,
        scale=1,
        idle_timeout_ms=300_000,
        ports=(9092,),
        host="orders-x",
        connections_max=10,
        wakes_per_minute_max=10,
    )


TRAFFIC = st.none() | st.sampled_from(
    [
        TrafficLimit(kind="refuse", reason="The budget is used up."),
        TrafficLimit(kind="refuse_produce", reason="The budget is used up."),
        TrafficLimit(kind="throttle", reason="The budget is used up.", bytes_per_s=65_536),
    ]
)
specs = st.builds(spec, st.integers(1, 4), st.sampled_from(["active", "suspended", "deleted"]))
statuses = st.builds(
    ClusterStatus,
    observed_generation=st.integers(1, 4),
    phase=st.sampled_from(["asleep", "starting", "running", "stopping", "failed"]),
    since_ms=st.integers(0, 2_000),
    brokers=st.sampled_from([(), (BROKER,)]),
    connections=st.integers(0, 2),
)
operations = st.builds(
    RunningOperation,
    type=st.sampled_from(OperationType),
    since_ms=st.integers(0, 2_000),
    age_s=st.floats(0, 100),
)
desired_clusters = st.builds(
    DesiredCluster,
    spec=specs,
    operation=st.none() | operations,
    traffic_limit=TRAFFIC,
    sample_data=st.booleans(),
    purge=st.booleans(),
)
observations = st.builds(
    Observed,
    known=st.booleans(),
    spec=st.none() | specs,
    status=st.none() | statuses,
    wake=st.booleans(),
    record=st.booleans(),
    sample_topic=st.booleans(),
    traffic_limit=TRAFFIC,
)


def kinds(actions):
    return [type(action) for action in actions]


@given(desired_clusters, observations)
def test_nothing_is_done_with_a_cell_that_is_unknown(desired, observed):
    actions = plan_actions(desired, replace(observed, known=False))
    assert set(kinds(actions)) <= {reconcile.LookAgain}


@given(desired_clusters, observations)
def test_a_newer_generation_is_never_replaced(desired, observed):
    put = [a.spec for a in plan_actions(desired, observed) if isinstance(a, reconcile.PutSpec)]
    if observed.spec is not None:
        assert all(written.generation >= observed.spec.generation for written in put)
    assert all(written == desired.spec for written in put)


@given(desired_clusters, observations)
def test_only_what_was_deleted_for_long_is_purged(desired, observed):
    actions = plan_actions(desired, observed)
    if reconcile.Purge in kinds(actions):
        assert desired.purge
        assert actions == [reconcile.Purge()]


@given(desired_clusters, observations)
def test_what_may_not_run_is_not_woken(desired, observed):
    actions = kinds(plan_actions(desired, observed))
    if desired.spec.state != "active":
        assert reconcile.ProduceSamples not in actions
    if desired.spec.state == "suspended":
        assert reconcile.RequestWake not in actions


@given(desired_clusters, observations)
def test_an_operation_ends_at_most_once_and_otherwise_is_looked_at_again(desired, observed):
    actions = kinds(plan_actions(desired, observed))
    ends = [kind for kind in actions if kind in {reconcile.Succeed, reconcile.Fail}]
    assert len(ends) <= 1
    if desired.operation is None:
        assert not ends
    elif not ends and reconcile.Purge not in actions and actions:
        assert reconcile.LookAgain in actions


@dataclass
class World:
    """A cell with a keeper that does what the plan asks of it at each step."""

    observed: Observed

    def obey(self, actions):
        for action in actions:
            match action:
                case reconcile.CreateRecord():
                    self.observed = replace(self.observed, record=True)
                case reconcile.CreateSampleTopic():
                    assert self.observed.record
                    self.observed = replace(self.observed, sample_topic=True)
                case reconcile.LimitTraffic():
                    assert self.observed.record
                    self.observed = replace(self.observed, traffic_limit=action.limit)
                case reconcile.LiftTrafficLimit():
                    self.observed = replace(self.observed, traffic_limit=None)
                case reconcile.PutSpec():
                    self.observed = replace(self.observed, spec=action.spec)
                case reconcile.RequestWake():
                    self.observed = replace(self.observed, wake=True)

    def keep(self):
        spec, status = self.observed.spec, self.observed.status
        if spec is None:
            return
        phase: Phase = "asleep"
        if spec.state == "active" and (
            self.observed.wake or (status is not None and status.phase in {"starting", "running"})
        ):
            phase = "running"
        if spec.idle_timeout_ms <= reconcile.SLEEP_SOON_MS:
            phase = "asleep"
        brokers = (BROKER,) if phase == "running" else ()
        self.observed = replace(
            self.observed,
            wake=False,
            status=ClusterStatus(
                observed_generation=spec.generation, phase=phase, since_ms=0, brokers=brokers
            ),
        )


@given(desired_clusters, observations)
def test_a_keeper_that_obeys_brings_every_operation_to_its_end(desired, observed):
    desired = replace(desired, purge=False, spec=replace(desired.spec, generation=5))
    if desired.operation is not None:
        desired = replace(desired, operation=replace(desired.operation, age_s=0.0, since_ms=3_000))
        if desired.operation.type is OperationType.DELETE_CLUSTER:
            desired = replace(desired, spec=replace(desired.spec, state="deleted"))
        elif desired.operation.type is OperationType.SUSPEND_CLUSTER:
            desired = replace(desired, spec=replace(desired.spec, state="suspended"))
        elif desired.operation.type is OperationType.SLEEP_CLUSTER:
            soon = reconcile.SLEEP_SOON_MS
            desired = replace(desired, spec=replace(desired.spec, idle_timeout_ms=soon))
        elif desired.spec.state == "deleted":
            desired = replace(desired, spec=replace(desired.spec, state="active"))
    world = World(replace(observed, known=True))
    for _ in range(4):
        actions = plan_actions(desired, world.observed)
        if reconcile.LookAgain not in kinds(actions):
            break
        world.obey(actions)
        world.keep()
    actions = plan_actions(desired, world.observed)
    assert reconcile.LookAgain not in kinds(actions)
    world.obey(actions)
    # After that nothing is left to write.
    again = set(kinds(plan_actions(desired, world.observed)))
    writes = {
        reconcile.PutSpec,
        reconcile.CreateRecord,
        reconcile.CreateSampleTopic,
        reconcile.LimitTraffic,
        reconcile.LiftTrafficLimit,
    }
    assert not writes & again
    if world.observed.record:
        assert world.observed.traffic_limit == desired.traffic_limit


@given(desired_clusters, observations)
def test_brokers_that_start_on_a_spec_refuse_produce_from_the_first(desired, observed):
    actions = kinds(plan_actions(desired, observed))
    if reconcile.LimitTraffic in actions and reconcile.PutSpec in actions:
        assert actions.index(reconcile.LimitTraffic) < actions.index(reconcile.PutSpec)


def started(kind, age_s=0.0):
    return RunningOperation(type=kind, since_ms=1_000, age_s=age_s)


def ending(desired, observed):
    return [
        action
        for action in plan_actions(desired, observed)
        if isinstance(action, reconcile.Succeed | reconcile.Fail)
    ]


@pytest.mark.parametrize(
    ("kind", "phase", "age_s", "expected"),
    [
        (OperationType.CREATE_CLUSTER, "running", 0, [reconcile.Succeed()]),
        (OperationType.CREATE_CLUSTER, "starting", 59, []),
        (OperationType.WAKE_CLUSTER, "asleep", 59, []),
        (OperationType.SLEEP_CLUSTER, "asleep", 0, [reconcile.Succeed()]),
        (OperationType.SLEEP_CLUSTER, "stopping", 59, []),
        (OperationType.DELETE_CLUSTER, "stopping", 10_000, []),
        (OperationType.DELETE_CLUSTER, "asleep", 0, [reconcile.Succeed()]),
        (OperationType.UNDELETE_CLUSTER, "asleep", 0, [reconcile.Succeed()]),
    ],
)
def test_operations_end_when_they_have_what_they_want(kind, phase, age_s, expected):
    status = ClusterStatus(observed_generation=1, phase=phase, since_ms=0)
    observed = Observed(known=True, spec=spec(), status=status, record=True)
    assert ending(DesiredCluster(spec(), started(kind, age_s)), observed) == expected


def test_a_start_that_takes_too_long_fails_by_name():
    observed = Observed(known=True, spec=spec(), record=True)
    (failure,) = ending(DesiredCluster(spec(), started(OperationType.WAKE_CLUSTER, 60)), observed)
    assert failure.code == "start_timed_out"


def test_brokers_that_do_not_start_fail_it_with_their_reason():
    status = ClusterStatus(observed_generation=1, phase="failed", since_ms=2_000, message="no disk")
    observed = Observed(known=True, spec=spec(), status=status, record=True)
    desired = DesiredCluster(spec(), started(OperationType.CREATE_CLUSTER))
    assert ending(desired, observed) == [reconcile.Fail("cluster_failed", "no disk")]
    # A failure from before the operation began does not fail it.
    before = replace(observed, status=replace(status, since_ms=500))
    assert ending(desired, before) == []


def test_clients_that_stay_keep_it_awake():
    status = ClusterStatus(observed_generation=1, phase="running", since_ms=0, connections=2)
    observed = Observed(known=True, spec=spec(), status=status, record=True)
    (failure,) = ending(DesiredCluster(spec(), started(OperationType.SLEEP_CLUSTER, 60)), observed)
    assert failure.code == "clients_connected"


MINUTE_MS = 60_000


@pytest.mark.parametrize(
    ("deletions", "reported", "expected"),
    [
        ([], [], []),
        # The cell has them already, however long ago they began.
        ([(0, 10), (20, None)], [0, 20], [(0, 10), (20, None)]),
        # The cell learns of it in time.
        ([(9 * MINUTE_MS + 30_000, None)], [], [(9 * MINUTE_MS + 30_000, None)]),
        # Late: from now on. Its meter may have counted what was stored in between.
        ([(9 * MINUTE_MS, None)], [], [(10 * MINUTE_MS, None)]),
        ([(0, 10), (9 * MINUTE_MS, None)], [0], [(0, 10), (10 * MINUTE_MS, None)]),
        # It ended before the cell learned of it.
        ([(0, 10), (20, 30)], [0], [(0, 10)]),
    ],
)
def test_no_deletion_begins_before_the_meter_can_know(deletions, reported, expected):
    assert reconcile.date_deletions(deletions, reported=reported, now_ms=10 * MINUTE_MS) == expected


def test_a_suspended_cluster_is_made_and_not_woken():
    observed = Observed(known=True, spec=None)
    desired = DesiredCluster(spec(state="suspended"), started(OperationType.CREATE_CLUSTER))
    assert ending(desired, observed) == [reconcile.Succeed()]
    waking = DesiredCluster(spec(state="suspended"), started(OperationType.WAKE_CLUSTER))
    (failure,) = ending(waking, observed)
    assert failure.code == "cluster_suspended"
