"""Decides what to do about a cluster: pure.

The decisions for a cluster that may run:

| phase | observed | next phase | actions |
|---|---|---|---|
| asleep | a wake request | starting | apply |
| asleep | it never sleeps | starting | apply |
| starting, running | no broker serves | starting | apply, unless the driver accepted that already |
| starting, running | a broker serves | running | the wake request is removed |
| starting, running | a slot has no broker | | apply |
| starting, running | a broker refused its settings, others did not | | apply, a while later |
| running | idle for long enough | running | a sample is taken |
| running | idle, and the sample was taken or failed | stopping | |
| stopping | a broker runs, and a new reading is still idle | stopping | stop |
| stopping | a client, no reading, or a wake request before the stop | running | |
| stopping | a wake request after the stop | starting | apply |
| stopping | nothing runs | asleep | |
| any | none serves: all refused their settings, or end again and again | failed | |
| failed | a new spec, or a while later a wake request | starting | apply |
| any | a broker's machine is lost, or it does not answer | | replace it, with growing pauses |

A cluster runs as soon as one of its brokers serves, and as long as one does: the others take over
what a broker led, so the failure of one is a matter of its slot alone. A smaller scale is an apply
too, by which the driver stops the brokers of the highest slots.

A cluster that may not run is stopped, and its wake requests are removed. The driver removes its
objects and files only once the control plane has written a `Removal`, which says that its records
are purged. A missing spec, or one that says deleted, is not enough.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from brokers.metadata_records import BrokerStatus
from provisioning.cell.drivers.base import BrokerObservation, BrokerState, ClusterObservation
from provisioning.cell.keeper.records import ClusterPhase, Spec, SpecState, Status, Wake


@dataclass(frozen=True)
class Rules:
    """The numbers that decisions depend on. Times are in milliseconds."""

    # Time after `stopping` was written until all gateways know it and hold new connections.
    stopping_grace_ms: int = 100
    # A cluster stays awake for at least this time: the client that woke it has yet to connect.
    awake_min_ms: int = 3_000
    # A cluster whose brokers refused their settings is started again no sooner than this.
    retry_failed_ms: int = 10_000
    # A broker that ended so often in a row makes its cluster failed. It is still started again.
    failures_max: int = 5
    # A broker that is observed as running and did not answer so often in a row is replaced.
    unanswered_max: int = 15


@dataclass(frozen=True)
class Reading:
    """The client connections to all brokers of a cluster; None where a broker gave no number.

    `taken_ms` is when the reading began. `counted` are the connections to those brokers that gave a
    number.
    """

    taken_ms: int
    connections: int | None
    counted: int = 0


@dataclass(frozen=True)
class View:
    """All that a decision depends on. Times are Unix milliseconds.

    - `status`: the status that was decided last; `stored`: whether the metadata store has it.
    - `wake`: the wake request, if there is one.
    - `observed`: the cluster's brokers as the driver sees them.
    - `applied`: the driver accepted the brokers of this spec, and was not asked to stop them since.
    - `refused`: why the driver refused them; empty where it did not.
    - `asked_ms`: when the driver was last asked to run them.
    - `reading`: the last reading of connections.
    - `busy_ms`: when the cluster was last not known to be idle.
    - `idle_ms`: since when a sample is requested because the cluster was idle for long enough.
    - `sampled_ms`: when the last finished attempt at a sample began.
    - `unanswered`: pairs of a slot and how often in a row its broker did not answer.
    - `restarts`: what the driver had counted at the decision before.
    - `kept`: the driver has objects or files of the cluster.
    - `removable`: the cluster's records are purged, and deletions are not held.
    - `not_replaceable`: slots whose broker was replaced too recently to be replaced again.
    - `doubtful`: so many brokers do not answer that the keeper itself may be cut off.
    - `leaving`: the keeper ends, and stops its brokers.
    """

    now_ms: int
    spec: Spec | None
    status: Status | None
    wake: Wake | None
    observed: ClusterObservation
    stored: bool = True
    applied: bool = False
    refused: str = ""
    asked_ms: int = 0
    reading: Reading | None = None
    busy_ms: int = 0
    idle_ms: int | None = None
    sampled_ms: int = 0
    unanswered: tuple[tuple[int, int], ...] = ()
    restarts: int = 0
    kept: bool = False
    removable: bool = False
    not_replaceable: frozenset[int] = frozenset()
    doubtful: bool = False
    leaving: bool = False

    @property
    def phase(self) -> ClusterPhase:
        """The phase that was decided last."""
        return ClusterPhase.ASLEEP if self.status is None else self.status.phase


@dataclass(frozen=True)
class Apply:
    """Have the driver run the brokers of the spec."""


@dataclass(frozen=True)
class Stop:
    """Have the driver stop the cluster's brokers cleanly."""


@dataclass(frozen=True)
class Replace:
    """Have the driver kill the broker of a slot and start another one."""

    slot: int


@dataclass(frozen=True)
class Remove:
    """Have the driver remove the cluster's objects and files."""


@dataclass(frozen=True)
class Scrape:
    """Count the client connections now."""


@dataclass(frozen=True)
class TakeSample:
    """Take a sample of the cluster's groups now."""


@dataclass(frozen=True)
class ForgetWake:
    """Remove the wake request of this revision."""

    revision: int


Action = Apply | Stop | Replace | Remove | Scrape | TakeSample | ForgetWake


@dataclass(frozen=True)
class Decision:
    """The actions to do, and the status to write; None where there is none to write.

    `Apply` is done before the status is written, all other actions after it.
    """

    actions: tuple[Action, ...]
    status: Status | None


def decide(view: View, rules: Rules) -> Decision:
    """Decides what to do about a cluster, by the table of this module."""
    spec = view.spec
    if spec is None:
        return Decision(_decide_without_spec(view), None)
    if not view.observed.known:
        # Without an observation nothing can be decided, so nothing changes.
        return Decision((), view.status)
    if view.leaving:
        return _decide_leaving(view, spec)
    if spec.state is not SpecState.ACTIVE:
        return _decide_at_rest(view, spec)
    return _decide_active(view, spec, rules)


def _decide_active(view: View, spec: Spec, rules: Rules) -> Decision:
    """Decides about a cluster that may run."""
    if _has_failed(view, spec, rules):
        return _decide_failed(view, spec, rules)
    if view.phase is ClusterPhase.FAILED:
        return _decide_retry(view, spec, rules)
    if view.phase is ClusterPhase.STOPPING and view.wake is None:
        return _decide_stopping(view, spec, rules)
    # A cluster that never sleeps (an idle timeout of 0) is started without a wake request.
    waits = view.phase is ClusterPhase.ASLEEP and view.wake is None and spec.idle_timeout_ms > 0
    if waits and not _was_started(view):
        return Decision((), _next_status(view, spec, ClusterPhase.ASLEEP))
    return _decide_running(view, spec, rules)


def _decide_without_spec(view: View) -> tuple[Action, ...]:
    """The actions for a cluster without a spec: stop it, and remove it once that is permitted."""
    forget = _forget_wake(view)
    if not view.observed.known:
        return forget
    if view.observed.brokers:
        return (*_stop_actions(view), *forget)
    return (Remove(), *forget) if view.kept and view.removable else forget


def _decide_at_rest(view: View, spec: Spec) -> Decision:
    """Decides about a cluster that is suspended or deleted: it is stopped."""
    why = spec.state.value
    actions: list[Action] = [*_forget_wake(view), *_stop_actions(view)]
    if view.observed.brokers:
        return Decision(tuple(actions), _next_status(view, spec, ClusterPhase.STOPPING, why))
    return Decision(tuple(actions), _next_status(view, spec, ClusterPhase.ASLEEP, why))


def _decide_leaving(view: View, spec: Spec) -> Decision:
    """Decides about a cluster while the keeper ends: it is stopped, but its wake request stays."""
    if view.phase is ClusterPhase.FAILED and not view.observed.brokers:
        return Decision((), view.status)
    phase = ClusterPhase.STOPPING if view.observed.brokers else ClusterPhase.ASLEEP
    return Decision(_stop_actions(view), _next_status(view, spec, phase))


def _decide_running(view: View, spec: Spec, rules: Rules) -> Decision:
    """Decides about a cluster that shall run: applies, replaces, or finds it idle."""
    actions: list[Action] = []
    if _is_apply_due(view, spec, rules):
        actions.append(Apply())
    actions += [
        Replace(broker.slot)
        for broker in view.observed.brokers
        if broker.slot not in view.not_replaceable and _needs_replacing(broker, view, rules)
    ]
    if not _serving_brokers(view):
        message = next((b.message for b in view.observed.brokers if b.message), "")
        return Decision(tuple(actions), _next_status(view, spec, ClusterPhase.STARTING, message))
    actions += _forget_wake(view)
    if not actions and _is_idle(view, spec, rules):
        if view.idle_ms is None or view.sampled_ms < view.idle_ms:
            return Decision((TakeSample(),), _next_status(view, spec, ClusterPhase.RUNNING))
        return Decision((Scrape(),), _next_status(view, spec, ClusterPhase.STOPPING, "idle"))
    message = view.refused or _failure_of_slots(view)
    return Decision(tuple(actions), _next_status(view, spec, ClusterPhase.RUNNING, message))


def _is_apply_due(view: View, spec: Spec, rules: Rules) -> bool:
    """Whether the driver is to be asked for the brokers of the spec."""
    slots = {broker.slot for broker in view.observed.brokers}
    if not view.refused and not (view.applied and slots.issuperset(range(spec.scale))):
        return True
    if not _is_refused(view):
        return False
    anew = view.status is None or spec.generation > view.status.observed_generation
    # What is refused once is refused again, so there are pauses. A negative time means that the
    # clock was set back.
    return anew or not 0 <= view.now_ms - view.asked_ms < rules.retry_failed_ms


def _failure_of_slots(view: View) -> str:
    """What keeps brokers from serving while others serve; empty where nothing is known."""
    broker = next((b for b in view.observed.brokers if b.message), None)
    return "" if broker is None else f"broker {broker.slot}: {broker.message}"


def _needs_replacing(broker: BrokerObservation, view: View, rules: Rules) -> bool:
    """Whether a broker serves nobody any more and the driver does not replace it by itself."""
    if broker.lost:
        return broker.state is not BrokerState.STOPPING
    silent = dict(view.unanswered).get(broker.slot, 0) >= rules.unanswered_max
    return broker.state is BrokerState.RUNNING and silent and not view.doubtful


def _decide_stopping(view: View, spec: Spec, rules: Rules) -> Decision:
    """Decides about a cluster that was idle and has no wake request: stop it, or let it run on."""
    if not view.observed.brokers:
        return Decision((), _next_status(view, spec, ClusterPhase.ASLEEP))
    if not _serving_brokers(view):
        # A broker that ended by itself meanwhile would be started again by the driver.
        return Decision(
            _stop_actions(view), _next_status(view, spec, ClusterPhase.STOPPING, "idle")
        )
    if not view.stored:
        # Gateways read the stored status. Without it they would neither hold connections nor ask
        # for a wake, so the cluster is not stopped.
        return _decide_running(view, spec, rules)
    since_ms = view.status.since_ms if view.status is not None else view.now_ms
    if view.reading is None or view.reading.taken_ms < since_ms + rules.stopping_grace_ms:
        return Decision((Scrape(),), _next_status(view, spec, ClusterPhase.STOPPING, "idle"))
    if view.reading.connections != 0:
        return _decide_running(view, spec, rules)
    return Decision((Stop(),), _next_status(view, spec, ClusterPhase.STOPPING, "idle"))


def _stop_actions(view: View) -> tuple[Stop, ...]:
    """A `Stop`, unless all brokers are stopping already."""
    states = {broker.state for broker in view.observed.brokers}
    return (Stop(),) if states - {BrokerState.STOPPING} else ()


def _decide_failed(view: View, spec: Spec, rules: Rules) -> Decision:
    """Decides about a cluster whose brokers refused their settings or end again and again."""
    message = view.refused or next((b.message for b in view.observed.brokers if b.message), "")
    if _is_refused(view) and view.phase is ClusterPhase.FAILED:
        return _decide_retry(view, spec, rules)
    actions: tuple[Action, ...] = () if view.applied or _is_refused(view) else (Apply(),)
    forget = _forget_wake(view) if _is_refused(view) else ()
    return Decision((*actions, *forget), _next_status(view, spec, ClusterPhase.FAILED, message))


def _decide_retry(view: View, spec: Spec, rules: Rules) -> Decision:
    """Decides about a failed cluster: it is started again, or stays failed."""
    status = view.status or _next_status(view, spec, ClusterPhase.FAILED)
    waited_ms = view.now_ms - status.since_ms
    # A negative time means that the clock was set back, which must not delay the start.
    due = waited_ms >= rules.retry_failed_ms or waited_ms < 0
    if view.observed.brokers and not _has_failed(view, spec, rules):
        return _decide_running(view, spec, rules)
    if spec.generation > status.observed_generation or (view.wake is not None and due):
        status = _next_status(view, spec, ClusterPhase.STARTING, status.message)
        return Decision((Apply(), *_forget_wake(view)), status)
    return Decision(
        _forget_wake(view), _next_status(view, spec, ClusterPhase.FAILED, status.message)
    )


def _has_failed(view: View, spec: Spec, rules: Rules) -> bool:
    """Whether no broker serves, nor will by itself: all are refused, or end again and again."""
    if _serving_brokers(view):
        return False
    own = {b.slot: b for b in view.observed.brokers if b.slot < spec.scale}
    return bool(view.refused) or (
        len(own) == spec.scale
        and all(
            broker.state is BrokerState.FAILED or broker.failures >= rules.failures_max
            for broker in own.values()
        )
    )


def _is_refused(view: View) -> bool:
    return bool(view.refused) or any(
        broker.state is BrokerState.FAILED for broker in view.observed.brokers
    )


def _was_started(view: View) -> bool:
    """Whether brokers run although the phase is asleep, as after a start whose status was lost."""
    return any(broker.state is not BrokerState.STOPPING for broker in view.observed.brokers)


def _serving_brokers(view: View) -> tuple[BrokerObservation, ...]:
    return tuple(b for b in view.observed.brokers if b.state is BrokerState.RUNNING)


def counts_all_clients(brokers: Sequence[BrokerObservation]) -> bool:
    """Whether the brokers that serve have all the clients: one serves, and no other is a process.

    A process that does not serve, or stops, may have clients that were not counted.
    """
    others = [b for b in brokers if b.state is not BrokerState.RUNNING]
    return len(others) < len(brokers) and all(map(_is_no_process, others))


def _is_no_process(broker: BrokerObservation) -> bool:
    """Whether a broker that does not serve has ended, or waits for a machine."""
    if broker.state is BrokerState.STARTING:
        return broker.pid is None and not broker.machine
    return broker.state in {BrokerState.WAITING, BrokerState.FAILED}


def _is_idle(view: View, spec: Spec, rules: Rules) -> bool:
    return (
        view.phase is ClusterPhase.RUNNING
        and view.status is not None
        and view.now_ms - view.status.since_ms >= rules.awake_min_ms
        and spec.idle_timeout_ms > 0
        and counts_all_clients(view.observed.brokers)
        and view.reading is not None
        and view.reading.connections == 0
        and view.now_ms - view.busy_ms >= spec.idle_timeout_ms
    )


def _forget_wake(view: View) -> tuple[ForgetWake, ...]:
    return () if view.wake is None else (ForgetWake(view.wake.revision),)


def _next_status(view: View, spec: Spec, phase: ClusterPhase, message: str = "") -> Status:
    before = view.status or Status(spec.generation, ClusterPhase.ASLEEP, view.now_ms)
    woke = before.phase is ClusterPhase.ASLEEP and phase is not ClusterPhase.ASLEEP
    connections = view.reading.counted if view.reading is not None else 0
    return replace(
        before,
        observed_generation=spec.generation,
        phase=phase,
        since_ms=before.since_ms if phase is before.phase else view.now_ms,
        brokers=tuple(_broker_status(broker) for broker in _serving_brokers(view)),
        # Those that are not known count as 0 here; whether the cluster is idle is decided by the
        # reading.
        connections=connections if _serving_brokers(view) else 0,
        restarts=(0 if woke else before.restarts) + view.observed.restarts - view.restarts,
        message=message,
        started_for=_started_for(view, spec, before, phase),
    )


def _started_for(view: View, spec: Spec, before: Status, phase: ClusterPhase) -> str:
    """Who asked for the start: the wake request's sender or the generation; empty once asleep."""
    if phase is ClusterPhase.ASLEEP:
        return ""
    begins = phase is ClusterPhase.STARTING and before.phase not in {
        ClusterPhase.STARTING,
        ClusterPhase.RUNNING,
    }
    if before.started_for and not begins:
        return before.started_for
    return f"generation {spec.generation}" if view.wake is None else view.wake.by


def _broker_status(broker: BrokerObservation) -> BrokerStatus:
    endpoints = broker.endpoints
    return BrokerStatus(
        slot=broker.slot,
        link="" if endpoints is None else endpoints.link,
        kafka="" if endpoints is None else endpoints.kafka,
        metrics="" if endpoints is None else endpoints.metrics,
        pid=broker.pid,
    )
