"""Plans what to do about a cluster so that its cell matches its database row: pure.

The desired state comes from the row, the observed state from the cell's metadata store.
`plan_actions` returns actions in their order. Each action may be repeated; where one fails, the
next reconcile makes a new plan. No action waits: while the cell has yet to change, the plan ends
with `LookAgain`.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from brokers.metadata_records import ClusterLimits, ClusterSpec, ClusterStatus, TrafficLimit
from provisioning.choices import OperationType

# After this time an operation that waits for brokers fails. The keeper still goes on starting them.
START_TIMEOUT_S = 60.0
# How long an operation waits for clients to disconnect before it fails and the cluster stays awake.
SLEEP_TIMEOUT_S = 60.0
# A cell that learns of a deletion later than this may have metered the bytes that were stored
# since. It is less than the time that the meter waits between a minute and counting it.
HEARD_LATE_MS = 30_000
# The idle time of a cluster that is to sleep as soon as nobody is connected.
SLEEP_SOON_MS = 1_000
# The idle time that means: the cluster never sleeps, and is started where it does not run.
NEVER_MS = 0
# What brokers hold clients to before the control plane has written limits.
NO_LIMITS = ClusterLimits()


@dataclass(frozen=True)
class RunningOperation:
    """The cluster's unfinished operation: `since_ms` (Unix time) is its start, `age_s` its age."""

    type: OperationType
    since_ms: int
    age_s: float


@dataclass(frozen=True)
class DesiredCluster:
    """The state that the cell shall have, from the cluster's row.

    `sample_data`: it shall have the sample topic and its records. `purge`: it was deleted so long
    ago that its data is to be removed. `traffic_limit`: what they shall do with the traffic of
    clients; None where they shall serve it. `limits`: what its brokers shall hold clients to.
    """

    spec: ClusterSpec
    operation: RunningOperation | None = None
    sample_data: bool = False
    purge: bool = False
    traffic_limit: TrafficLimit | None = None
    limits: ClusterLimits = NO_LIMITS


@dataclass(frozen=True)
class Observed:
    """The state that the cell has. `known` is False where it did not answer; then ignore the rest.

    `wake`: there is a wake request. `record`: the cluster has a record of its own, which says its
    `scale`. `sample_topic`: it has the sample topic. `traffic_limit`: what they do with the traffic
    of clients; None where they serve it. `limits`: what its brokers hold clients to.
    """

    known: bool
    spec: ClusterSpec | None = None
    status: ClusterStatus | None = None
    wake: bool = False
    record: bool = False
    scale: int | None = None
    sample_topic: bool = False
    traffic_limit: TrafficLimit | None = None
    limits: ClusterLimits = NO_LIMITS

    @property
    def running(self) -> bool:
        """Whether its brokers serve."""
        return self.status is not None and self.status.phase == "running"

    @property
    def at_rest(self) -> bool:
        """Whether no broker is left."""
        if self.status is None:
            return True
        return self.status.phase in {"asleep", "failed"} and not self.status.brokers


# When a cluster was deleted and when it was restored, in Unix ms; None: it still is deleted.
Deletion = tuple[int, int | None]


def date_deletions(
    deletions: Sequence[Deletion], *, reported: Collection[int], now_ms: int
) -> list[Deletion]:
    """The times of a cluster's deletions, moved so that its meter has counted none of that time.

    `reported` holds when those deletions began that the cell's spec already has: they stay as they
    are, also where a worker wrote the spec and ended before it saved the row. A deletion that the
    cell learns of late begins at `now_ms`. One that is over by then is left out.
    """
    dated: list[Deletion] = []
    heard = sorted(set(reported) - {since_ms for since_ms, _ in deletions})
    for since_ms, until_ms in deletions:
        if since_ms in reported or now_ms - since_ms <= HEARD_LATE_MS:
            dated.append((since_ms, until_ms))
            continue
        begins_ms = next((earlier for earlier in heard if earlier > since_ms), now_ms)
        if until_ms is None or begins_ms < until_ms:
            dated.append((begins_ms, until_ms))
    return dated


@dataclass(frozen=True)
class CreateRecord:
    """Create the cluster's own record."""


@dataclass(frozen=True)
class SetScale:
    """Write to the cluster's record how many brokers it has when awake."""

    scale: int


@dataclass(frozen=True)
class CreateSampleTopic:
    """Create the sample topic."""


@dataclass(frozen=True)
class ProduceSamples:
    """Produce those sample records that are missing."""


@dataclass(frozen=True)
class LimitTraffic:
    """Have the cluster's brokers, present and future ones, refuse traffic or slow it down."""

    limit: TrafficLimit


@dataclass(frozen=True)
class LiftTrafficLimit:
    """Have the cluster's brokers serve traffic again."""


@dataclass(frozen=True)
class SetLimits:
    """Have the cluster's brokers, present and future ones, hold clients to these limits."""

    limits: ClusterLimits


@dataclass(frozen=True)
class PutSpec:
    """Write the cluster's spec to the cell."""

    spec: ClusterSpec


@dataclass(frozen=True)
class MarkReconciled:
    """Note in the row that the cell has this generation."""

    generation: int


@dataclass(frozen=True)
class RequestWake:
    """Write a wake request, so that the keeper starts brokers."""


@dataclass(frozen=True)
class OperationProgress:
    """Note how far the operation is, in percent."""

    percent: int


@dataclass(frozen=True)
class Succeed:
    """End the operation as succeeded."""


@dataclass(frozen=True)
class Fail:
    """End the operation as failed, with an error for the user."""

    code: str
    detail: str


@dataclass(frozen=True)
class Purge:
    """Remove every record and all data of the cluster, and release its ports."""


@dataclass(frozen=True)
class LookAgain:
    """Reconcile again soon, because the cell has yet to change."""


Action = (
    CreateRecord
    | SetScale
    | CreateSampleTopic
    | ProduceSamples
    | LimitTraffic
    | LiftTrafficLimit
    | SetLimits
    | PutSpec
    | MarkReconciled
    | RequestWake
    | OperationProgress
    | Succeed
    | Fail
    | Purge
    | LookAgain
)


def plan_actions(desired: DesiredCluster, observed: Observed) -> list[Action]:
    """The actions that bring the cell closer to the desired state."""
    if not observed.known:
        # Without an observation nothing can be planned. The sweep reconciles the cluster later.
        return [LookAgain()] if desired.operation else []
    if desired.purge:
        return [Purge()]
    if observed.spec is not None and observed.spec.generation > desired.spec.generation:
        # Another worker has written a later generation: this one read the row before that.
        return []
    return [
        *_plan_record(desired, observed),
        *_plan_operation(desired, observed),
        *_plan_samples(desired, observed),
    ]


def _plan_record(desired: DesiredCluster, observed: Observed) -> list[Action]:
    """Plans the cluster's record before the spec, so that brokers that start find their topics."""
    actions: list[Action] = []
    if desired.spec.state != "deleted":
        if not observed.record:
            actions.append(CreateRecord())
        elif observed.scale is not None and observed.scale != desired.spec.scale:
            actions.append(SetScale(desired.spec.scale))
        if desired.sample_data and not observed.sample_topic:
            actions.append(CreateSampleTopic())
    if observed.record or desired.spec.state != "deleted":
        actions += _plan_traffic_limit(desired, observed)
    if desired.spec.state != "deleted" and observed.limits != desired.limits:
        # Before the spec, so that brokers which start on it hold clients to the limits at once.
        actions.append(SetLimits(desired.limits))
    if observed.spec != desired.spec:
        actions.append(PutSpec(desired.spec))
    actions.append(MarkReconciled(desired.spec.generation))
    return actions


def _plan_traffic_limit(desired: DesiredCluster, observed: Observed) -> list[Action]:
    """Plans it before the spec, so that brokers which start on it abide by it at once."""
    if desired.traffic_limit == observed.traffic_limit:
        return []
    if desired.traffic_limit is None:
        return [LiftTrafficLimit()]
    return [LimitTraffic(desired.traffic_limit)]


def _plan_samples(desired: DesiredCluster, observed: Observed) -> list[Action]:
    may = desired.sample_data and desired.spec.state == "active"
    return [ProduceSamples()] if may and observed.running else []


def _plan_operation(desired: DesiredCluster, observed: Observed) -> list[Action]:
    operation = desired.operation
    if operation is None:
        return []
    match operation.type:
        case OperationType.UNDELETE_CLUSTER | OperationType.RESUME_CLUSTER:
            return [Succeed()]
        case OperationType.DELETE_CLUSTER | OperationType.SUSPEND_CLUSTER:
            done = observed.at_rest and _keeper_has_seen(desired, observed)
            return [Succeed()] if done else [OperationProgress(50), LookAgain()]
        case OperationType.SLEEP_CLUSTER:
            return _plan_sleep(operation, observed)
        case OperationType.CREATE_CLUSTER | OperationType.WAKE_CLUSTER:
            return _plan_start(desired, operation, observed)


def _keeper_has_seen(desired: DesiredCluster, observed: Observed) -> bool:
    """Whether the keeper has seen this generation. Without a status it has started nothing."""
    status = observed.status
    return status is None or status.observed_generation >= desired.spec.generation


def _plan_sleep(operation: RunningOperation, observed: Observed) -> list[Action]:
    if observed.at_rest:
        return [Succeed()]
    if operation.age_s < SLEEP_TIMEOUT_S:
        return [OperationProgress(50), LookAgain()]
    connections = observed.status.connections if observed.status is not None else 0
    if connections:
        return [Fail("clients_connected", f"{connections} clients stayed connected.")]
    return [Fail("sleep_timed_out", f"It was still awake after {SLEEP_TIMEOUT_S:.0f} s.")]


def _plan_start(
    desired: DesiredCluster, operation: RunningOperation, observed: Observed
) -> list[Action]:
    if desired.spec.state == "suspended":
        if operation.type is OperationType.CREATE_CLUSTER:
            return [Succeed()]
        return [Fail("cluster_suspended", "A suspended cluster does not run.")]
    if observed.running:
        return [Succeed()]
    status = observed.status
    if (
        status is not None
        and status.phase == "failed"
        and status.since_ms >= operation.since_ms
        and not observed.wake
    ):
        return [Fail("cluster_failed", status.message or "Its brokers do not start.")]
    if operation.age_s >= START_TIMEOUT_S:
        detail = f"Its brokers did not serve within {START_TIMEOUT_S:.0f} s."
        return [Fail("start_timed_out", detail)]
    wake: list[Action] = [] if observed.wake else [RequestWake()]
    return [*wake, OperationProgress(50), LookAgain()]
