"""What to do about a cluster so that its cell has what is wanted of it. Pure.

Wanted comes from the row, observed from the cell's metadata store. `plan` gives actions in their
order; each may be repeated, and where one fails the next plan begins again. Nothing waits: where
something is yet to come, the plan ends with `LookAgain`.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from brokers.metadata_records import ClusterSpec, ClusterStatus
from provisioning.choices import OperationType

# How long brokers may take before an operation that waits for them fails. They are still tried.
START_TIMEOUT_S = 60.0
# How long an operation waits for clients to leave before the cluster stays awake.
SLEEP_TIMEOUT_S = 60.0
# A cell that hears of a deletion later than this may have metered what was stored since. Less than
# the time that its meter leaves between a minute and counting it.
HEARD_LATE_MS = 30_000
# For a cluster that is to sleep as soon as nobody is connected.
SLEEP_SOON_MS = 1_000
# For a cluster that never sleeps, and is started where it does not run.
NEVER_MS = 0


@dataclass(frozen=True)
class RunningOperation:
    """The cluster's unfinished operation. `since_ms` is Unix time, `age_s` seconds."""

    type: OperationType
    since_ms: int
    age_s: float


@dataclass(frozen=True)
class Wanted:
    """What is wanted. `purge`: deleted for so long that its data goes.

    `produce_suspension`: why it refuses produce; None: it takes records.
    """

    spec: ClusterSpec
    operation: RunningOperation | None = None
    sample_data: bool = False
    purge: bool = False
    produce_suspension: str | None = None


@dataclass(frozen=True)
class Observed:
    """What the cell tells. `known` is False where it did not answer: the rest says nothing then.

    `record`: the cluster has a record of its own, which says its `scale`. `sample_topic`: it has
    the sample topic. `produce_suspension`: why its brokers refuse produce; None: they take records.
    """

    known: bool
    spec: ClusterSpec | None = None
    status: ClusterStatus | None = None
    wake: bool = False
    record: bool = False
    scale: int | None = None
    sample_topic: bool = False
    produce_suspension: str | None = None

    @property
    def running(self) -> bool:
        """Brokers serve."""
        return self.status is not None and self.status.phase == "running"

    @property
    def at_rest(self) -> bool:
        """No broker is left."""
        if self.status is None:
            return True
        return self.status.phase in {"asleep", "failed"} and not self.status.brokers


Deletion = tuple[int, int | None]


def date_deletions(
    deletions: Sequence[Deletion], *, told: Collection[int], now_ms: int
) -> list[Deletion]:
    """When a cluster was deleted, `[from_ms, until_ms]`, so that its meter has counted none of it.

    What the cell was told already (`told`: when those began) stays as it is, also where whoever
    told it died before the row had it. A deletion that the cell hears of late begins now; one that
    is over by then was none to the cell.
    """
    dated: list[Deletion] = []
    heard = sorted(set(told) - {since_ms for since_ms, _ in deletions})
    for since_ms, until_ms in deletions:
        if since_ms in told or now_ms - since_ms <= HEARD_LATE_MS:
            dated.append((since_ms, until_ms))
            continue
        begins_ms = next((each for each in heard if each > since_ms), now_ms)
        if until_ms is None or begins_ms < until_ms:
            dated.append((begins_ms, until_ms))
    return dated


@dataclass(frozen=True)
class CreateRecord:
    """Make the cluster's own record."""


@dataclass(frozen=True)
class SetScale:
    """Tell the cluster's record how many brokers it has when awake."""

    scale: int


@dataclass(frozen=True)
class CreateSampleTopic:
    """Make the sample topic."""


@dataclass(frozen=True)
class ProduceSamples:
    """Produce the sample records that are not there yet."""


@dataclass(frozen=True)
class SuspendProduce:
    """Have its brokers, those of later too, refuse produce with these words."""

    reason: str


@dataclass(frozen=True)
class ResumeProduce:
    """Have its brokers take records again."""


@dataclass(frozen=True)
class PutSpec:
    """Tell the cell what is wanted."""

    spec: ClusterSpec


@dataclass(frozen=True)
class MarkReconciled:
    """Remember that the cell has this generation."""

    generation: int


@dataclass(frozen=True)
class RequestWake:
    """Ask the keeper to start brokers."""


@dataclass(frozen=True)
class Progress:
    """How far the operation is, in percent."""

    percent: int


@dataclass(frozen=True)
class Succeed:
    """The operation is done."""


@dataclass(frozen=True)
class Fail:
    """The operation will not succeed."""

    code: str
    detail: str


@dataclass(frozen=True)
class Purge:
    """Remove every record and all data of the cluster, and give its ports back."""


@dataclass(frozen=True)
class LookAgain:
    """Something is yet to come: plan again soon."""


Action = (
    CreateRecord
    | SetScale
    | CreateSampleTopic
    | ProduceSamples
    | SuspendProduce
    | ResumeProduce
    | PutSpec
    | MarkReconciled
    | RequestWake
    | Progress
    | Succeed
    | Fail
    | Purge
    | LookAgain
)


def plan(wanted: Wanted, observed: Observed) -> list[Action]:
    """What to do now."""
    if not observed.known:
        # Nothing follows from not knowing, and the sweep comes back anyway.
        return [LookAgain()] if wanted.operation else []
    if wanted.purge:
        return [Purge()]
    if observed.spec is not None and observed.spec.generation > wanted.spec.generation:
        # The row was read before somebody else's change: this worker has nothing to say.
        return []
    return [*_record(wanted, observed), *_operation(wanted, observed), *_samples(wanted, observed)]


def _record(wanted: Wanted, observed: Observed) -> list[Action]:
    """The cluster's record first: brokers that start find their topics."""
    actions: list[Action] = []
    if wanted.spec.state != "deleted":
        if not observed.record:
            actions.append(CreateRecord())
        elif observed.scale is not None and observed.scale != wanted.spec.scale:
            actions.append(SetScale(wanted.spec.scale))
        if wanted.sample_data and not observed.sample_topic:
            actions.append(CreateSampleTopic())
    if observed.record or wanted.spec.state != "deleted":
        actions += _produce_suspension(wanted, observed)
    if observed.spec != wanted.spec:
        actions.append(PutSpec(wanted.spec))
    actions.append(MarkReconciled(wanted.spec.generation))
    return actions


def _produce_suspension(wanted: Wanted, observed: Observed) -> list[Action]:
    """Before the spec: brokers that start on it refuse from the first."""
    if wanted.produce_suspension == observed.produce_suspension:
        return []
    if wanted.produce_suspension is None:
        return [ResumeProduce()]
    return [SuspendProduce(wanted.produce_suspension)]


def _samples(wanted: Wanted, observed: Observed) -> list[Action]:
    may = wanted.sample_data and wanted.spec.state == "active"
    return [ProduceSamples()] if may and observed.running else []


def _operation(wanted: Wanted, observed: Observed) -> list[Action]:
    operation = wanted.operation
    if operation is None:
        return []
    match operation.type:
        case OperationType.UNDELETE_CLUSTER | OperationType.RESUME_CLUSTER:
            return [Succeed()]
        case OperationType.DELETE_CLUSTER | OperationType.SUSPEND_CLUSTER:
            done = observed.at_rest and _has_seen(wanted, observed)
            return [Succeed()] if done else [Progress(50), LookAgain()]
        case OperationType.SLEEP_CLUSTER:
            return _sleep(operation, observed)
        case OperationType.CREATE_CLUSTER | OperationType.WAKE_CLUSTER:
            return _start(wanted, operation, observed)


def _has_seen(wanted: Wanted, observed: Observed) -> bool:
    """The keeper knows what is wanted; one that never looked has started nothing."""
    status = observed.status
    return status is None or status.observed_generation >= wanted.spec.generation


def _sleep(operation: RunningOperation, observed: Observed) -> list[Action]:
    if observed.at_rest:
        return [Succeed()]
    if operation.age_s < SLEEP_TIMEOUT_S:
        return [Progress(50), LookAgain()]
    connections = observed.status.connections if observed.status is not None else 0
    if connections:
        return [Fail("clients_connected", f"{connections} clients stayed connected.")]
    return [Fail("sleep_timed_out", f"It was still awake after {SLEEP_TIMEOUT_S:.0f} s.")]


def _start(wanted: Wanted, operation: RunningOperation, observed: Observed) -> list[Action]:
    if wanted.spec.state == "suspended":
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
    return [*wake, Progress(50), LookAgain()]
