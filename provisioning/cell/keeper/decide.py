"""What to do about a cluster: pure.

The table of it, for a cluster that may run:

| phase | what is seen | becomes | what is done |
|---|---|---|---|
| asleep | a wake request | starting | apply |
| asleep | it never sleeps | starting | apply |
| starting, running | no broker serves | starting | apply, where that is not done |
| starting, running | a broker serves | running | the wake request is removed |
| running | idle for long enough | running | a sample is taken |
| running | idle, and the sample was tried | stopping | |
| stopping | broker runs, read again and still idle | stopping | stop |
| stopping | a client, no reading, or a wake request before the stop | running | |
| stopping | a wake request after the stop | starting | apply |
| stopping | nothing runs | asleep | |
| any | a broker refused its settings, or ends again and again | failed | |
| failed | a wake request or a new spec, a while later | starting | apply |
| any | a broker's machine is lost, or it does not answer | | it is replaced, not too often |

A cluster that may not run is stopped, and its wake requests are removed. What the driver keeps of
it goes only once the control plane tells that its records are purged: no spec, or one that says
deleted, is no such word.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from brokers.metadata_records import BrokerStatus
from provisioning.cell.drivers.base import BrokerObservation, BrokerState, ClusterObservation
from provisioning.cell.keeper.records import Phase, Spec, SpecState, Status, Wake


@dataclass(frozen=True)
class Rules:
    """Bounds that decisions keep to. Times in milliseconds."""

    # After `stopping` was written, until gateways know it and hold whoever comes.
    stopping_grace_ms: int = 100
    # It stays awake for so long at least: whoever woke it has yet to connect.
    awake_min_ms: int = 3_000
    # A cluster whose brokers refused their settings is tried again no more often.
    retry_failed_ms: int = 10_000
    # A broker that ended so often in a row makes its cluster failed. It is still tried.
    failures_max: int = 5
    # A broker that serves by its own account and did not answer so often in a row is replaced.
    unanswered_max: int = 15


@dataclass(frozen=True)
class Reading:
    """Connections of clients to all brokers of a cluster, None where one did not tell."""

    taken_ms: int
    connections: int | None


@dataclass(frozen=True)
class View:
    """All that a decision rests on.

    `status`: the last one decided, and `stored` whether it is in the metadata store. `applied`:
    the driver accepted the brokers that the spec asks for, and no stop since. `refused`: why it
    did not. `busy_ms`: when the cluster was last not known to be idle. `idle_ms`: since when a
    sample is asked for, because it was idle for long enough. `sampled_ms`: when the last sample
    that ended began. `unanswered`: slots with how often in a row a broker did not answer.
    `restarts`: what the driver had counted at the decision before. `kept`: the driver has something
    of it. `removable`: its records are purged, and nothing holds deletions. `spared`: slots whose
    broker is not to be replaced now. `doubtful`: that brokers do not answer says nothing about
    them. `leaving`: the keeper ends, and its brokers with it.
    """

    now_ms: int
    spec: Spec | None
    status: Status | None
    wake: Wake | None
    observed: ClusterObservation
    stored: bool = True
    applied: bool = False
    refused: str = ""
    reading: Reading | None = None
    busy_ms: int = 0
    idle_ms: int | None = None
    sampled_ms: int = 0
    unanswered: tuple[tuple[int, int], ...] = ()
    restarts: int = 0
    kept: bool = False
    removable: bool = False
    spared: frozenset[int] = frozenset()
    doubtful: bool = False
    leaving: bool = False

    @property
    def phase(self) -> Phase:
        """The phase that was decided last."""
        return Phase.ASLEEP if self.status is None else self.status.phase


@dataclass(frozen=True)
class Apply:
    """Have the driver run the brokers that the spec asks for."""


@dataclass(frozen=True)
class Stop:
    """Have the driver stop them, cleanly."""


@dataclass(frozen=True)
class Replace:
    """Have the driver end a broker by force, and start another."""

    slot: int


@dataclass(frozen=True)
class Remove:
    """Have the driver remove what it keeps of the cluster."""


@dataclass(frozen=True)
class Scrape:
    """Read the connections now."""


@dataclass(frozen=True)
class TakeSample:
    """Take a sample now."""


@dataclass(frozen=True)
class ForgetWake:
    """Remove this wake request."""

    revision: int


Action = Apply | Stop | Replace | Remove | Scrape | TakeSample | ForgetWake


@dataclass(frozen=True)
class Decision:
    """What to do, and the status to write; None where there is none to tell.

    A start is done before its status is written, everything else after.
    """

    actions: tuple[Action, ...]
    status: Status | None


def decide(view: View, rules: Rules) -> Decision:
    """What to do about a cluster."""
    spec = view.spec
    if spec is None:
        return Decision(_cease(view), None)
    if not view.observed.known:
        # Nothing follows from not knowing.
        return Decision((), view.status)
    if view.leaving:
        return _leave(view, spec)
    if spec.state is not SpecState.ACTIVE:
        return _rest(view, spec)
    return _active(view, spec, rules)


def _active(view: View, spec: Spec, rules: Rules) -> Decision:
    """It may run."""
    if _ends_again_and_again(view, rules) or _is_refused(view):
        return _fail(view, spec, rules)
    if view.phase is Phase.FAILED:
        return _stay_failed_or_retry(view, spec, rules)
    if view.phase is Phase.STOPPING and view.wake is None:
        return _stopping(view, spec, rules)
    # One that never sleeps needs nobody to wake it.
    waits = view.phase is Phase.ASLEEP and view.wake is None and spec.idle_timeout_ms > 0
    if waits and not _was_started(view):
        return Decision((), _status(view, spec, Phase.ASLEEP))
    return _run(view, spec, rules)


def _cease(view: View) -> tuple[Action, ...]:
    """The cluster is none any more: whatever is left of it goes."""
    forget = _forget(view)
    if not view.observed.known:
        return forget
    if view.observed.brokers:
        return (*_stop(view), *forget)
    return (Remove(), *forget) if view.kept and view.removable else forget


def _rest(view: View, spec: Spec) -> Decision:
    """It may not run."""
    why = spec.state.value
    actions: list[Action] = [*_forget(view), *_stop(view)]
    if view.observed.brokers:
        return Decision(tuple(actions), _status(view, spec, Phase.STOPPING, why))
    return Decision(tuple(actions), _status(view, spec, Phase.ASLEEP, why))


def _leave(view: View, spec: Spec) -> Decision:
    """It is stopped without being unwanted: a wake request stays for the next keeper."""
    if view.phase is Phase.FAILED and not view.observed.brokers:
        return Decision((), view.status)
    phase = Phase.STOPPING if view.observed.brokers else Phase.ASLEEP
    return Decision(_stop(view), _status(view, spec, phase))


def _run(view: View, spec: Spec, rules: Rules) -> Decision:
    """It shall run."""
    actions: list[Action] = []
    missing = set(range(spec.scale)) - {broker.slot for broker in view.observed.brokers}
    if not view.applied or missing:
        actions.append(Apply())
    actions += [
        Replace(broker.slot)
        for broker in view.observed.brokers
        if broker.slot not in view.spared and _is_useless(broker, view, rules)
    ]
    if not _serving(view):
        message = next((b.message for b in view.observed.brokers if b.message), "")
        return Decision(tuple(actions), _status(view, spec, Phase.STARTING, message))
    actions += _forget(view)
    if not actions and _is_idle(view, spec, rules):
        if view.idle_ms is None or view.sampled_ms < view.idle_ms:
            return Decision((TakeSample(),), _status(view, spec, Phase.RUNNING))
        return Decision((Scrape(),), _status(view, spec, Phase.STOPPING, "idle"))
    return Decision(tuple(actions), _status(view, spec, Phase.RUNNING))


def _is_useless(broker: BrokerObservation, view: View, rules: Rules) -> bool:
    """It serves nobody any more, and the driver does not replace it by itself."""
    if broker.lost:
        return broker.state is not BrokerState.STOPPING
    silent = dict(view.unanswered).get(broker.slot, 0) >= rules.unanswered_max
    return broker.state is BrokerState.RUNNING and silent and not view.doubtful


def _stopping(view: View, spec: Spec, rules: Rules) -> Decision:
    """It was idle, gateways hold whoever comes, and nobody has come yet."""
    if not view.observed.brokers:
        return Decision((), _status(view, spec, Phase.ASLEEP))
    if not _serving(view):
        # One that ended between the idleness and the stop is about to be started again.
        return Decision(_stop(view), _status(view, spec, Phase.STOPPING, "idle"))
    if not view.stored:
        # Gateways could not know that they have to hold and to wake: better not to stop.
        return _run(view, spec, rules)
    since_ms = view.status.since_ms if view.status is not None else view.now_ms
    if view.reading is None or view.reading.taken_ms < since_ms + rules.stopping_grace_ms:
        return Decision((Scrape(),), _status(view, spec, Phase.STOPPING, "idle"))
    if view.reading.connections != 0:
        return _run(view, spec, rules)
    return Decision((Stop(),), _status(view, spec, Phase.STOPPING, "idle"))


def _stop(view: View) -> tuple[Stop, ...]:
    """Stops what does not stop already."""
    states = {broker.state for broker in view.observed.brokers}
    return (Stop(),) if states - {BrokerState.STOPPING} else ()


def _fail(view: View, spec: Spec, rules: Rules) -> Decision:
    """Its brokers do not start."""
    message = view.refused or next((b.message for b in view.observed.brokers if b.message), "")
    if _is_refused(view) and view.phase is Phase.FAILED:
        return _stay_failed_or_retry(view, spec, rules)
    actions: tuple[Action, ...] = () if view.applied or _is_refused(view) else (Apply(),)
    forget = _forget(view) if _is_refused(view) else ()
    return Decision((*actions, *forget), _status(view, spec, Phase.FAILED, message))


def _stay_failed_or_retry(view: View, spec: Spec, rules: Rules) -> Decision:
    status = view.status or _status(view, spec, Phase.FAILED)
    waited_ms = view.now_ms - status.since_ms
    # A clock that was set back must not keep it from being tried.
    due = waited_ms >= rules.retry_failed_ms or waited_ms < 0
    if view.observed.brokers and not _is_refused(view):
        return _run(view, spec, rules)
    if spec.generation > status.observed_generation or (view.wake is not None and due):
        status = _status(view, spec, Phase.STARTING, status.message)
        return Decision((Apply(), *_forget(view)), status)
    return Decision(_forget(view), _status(view, spec, Phase.FAILED, status.message))


def _ends_again_and_again(view: View, rules: Rules) -> bool:
    return not _serving(view) and any(
        broker.failures >= rules.failures_max for broker in view.observed.brokers
    )


def _is_refused(view: View) -> bool:
    return bool(view.refused) or any(
        broker.state is BrokerState.FAILED for broker in view.observed.brokers
    )


def _was_started(view: View) -> bool:
    """Whether brokers run that nobody stops: a start whose status did not reach the store."""
    return any(broker.state is not BrokerState.STOPPING for broker in view.observed.brokers)


def _serving(view: View) -> tuple[BrokerObservation, ...]:
    return tuple(b for b in view.observed.brokers if b.state is BrokerState.RUNNING)


def _is_idle(view: View, spec: Spec, rules: Rules) -> bool:
    return (
        view.phase is Phase.RUNNING
        and view.status is not None
        and view.now_ms - view.status.since_ms >= rules.awake_min_ms
        and spec.idle_timeout_ms > 0
        and len(_serving(view)) == len(view.observed.brokers)
        and view.reading is not None
        and view.reading.connections == 0
        and view.now_ms - view.busy_ms >= spec.idle_timeout_ms
    )


def _forget(view: View) -> tuple[ForgetWake, ...]:
    return () if view.wake is None else (ForgetWake(view.wake.revision),)


def _status(view: View, spec: Spec, phase: Phase, message: str = "") -> Status:
    before = view.status or Status(spec.generation, Phase.ASLEEP, view.now_ms)
    woke = before.phase is Phase.ASLEEP and phase is not Phase.ASLEEP
    connections = view.reading.connections if view.reading is not None else 0
    return replace(
        before,
        observed_generation=spec.generation,
        phase=phase,
        since_ms=before.since_ms if phase is before.phase else view.now_ms,
        brokers=tuple(_described(broker) for broker in _serving(view)),
        # Not to be told apart from none; idleness is decided by the reading itself.
        connections=(connections or 0) if _serving(view) else 0,
        restarts=(0 if woke else before.restarts) + view.observed.restarts - view.restarts,
        message=message,
        started_for=_started_for(view, spec, before, phase),
    )


def _started_for(view: View, spec: Spec, before: Status, phase: Phase) -> str:
    """Whoever asked for the wake, or the spec; for as long as the brokers are there."""
    if phase is Phase.ASLEEP:
        return ""
    begins = phase is Phase.STARTING and before.phase not in {Phase.STARTING, Phase.RUNNING}
    if before.started_for and not begins:
        return before.started_for
    return f"generation {spec.generation}" if view.wake is None else view.wake.by


def _described(broker: BrokerObservation) -> BrokerStatus:
    endpoints = broker.endpoints
    return BrokerStatus(
        slot=broker.slot,
        link="" if endpoints is None else endpoints.link,
        kafka="" if endpoints is None else endpoints.kafka,
        metrics="" if endpoints is None else endpoints.metrics,
        pid=broker.pid,
    )
