"""What the keeper asks of whatever runs brokers: processes of this machine, or Kubernetes.

A driver is told what shall be there and makes it so, again and again, until it is told otherwise:
a broker that ends by itself is replaced without anybody asking. Requests only ask, and answer at
once; what became of them is seen by `observe`, and `Driver.notify` says when to look. So an answer
that was lost costs nothing: every request may be repeated, and `observe` tells what is there.

Nothing here knows a process or a machine. The Kubernetes driver maps a `BrokerPlan` to a
Deployment, `stop` to zero replicas, `remove` to deleting the namespace, and pods to
`BrokerObservation`s; `name` is then a pod's name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Protocol

Settings = Mapping[str, Mapping[str, object]]


@dataclass(frozen=True)
class BrokerPlan:
    """One broker that shall run.

    `settings` are those of `docs/reference/broker-settings.md`, by section. They hold secrets: a
    driver hands them to the broker and to nobody else, and they do not show in `repr`. `cause`:
    what it is started for, which a driver gives to the broker as `broker.started_for` when it
    starts it, for its log. It makes no other plan. `files`: by name, what the broker finds beside
    its settings where it does not see the files that they name.
    """

    cluster_id: str
    slot: int
    settings: Settings = field(repr=False)
    cause: str = field(default="", compare=False)
    files: Mapping[str, bytes] = field(default_factory=dict, repr=False)

    def start_settings(self) -> Settings:
        """What a broker that starts now is given."""
        broker = {**self.settings.get("broker", {}), "started_for": self.cause}
        return {**self.settings, "broker": broker} if self.cause else self.settings


@dataclass(frozen=True)
class ClusterPlan:
    """All brokers that a cluster shall have, by slot. A cluster that shall have none is stopped."""

    cluster_id: str
    brokers: tuple[BrokerPlan, ...]

    def __post_init__(self) -> None:
        """Raises `ValueError` for a plan that no driver could keep."""
        slots = [broker.slot for broker in self.brokers]
        if not slots or len(set(slots)) != len(slots):
            message = f"slots {slots} of {self.cluster_id}: want one broker or more, each its own"
            raise ValueError(message)
        if any(broker.cluster_id != self.cluster_id for broker in self.brokers):
            message = f"a broker of another cluster in the plan of {self.cluster_id}"
            raise ValueError(message)

    def caused_by(self, cause: str) -> ClusterPlan:
        """The same brokers, started for this."""
        return replace(self, brokers=tuple(replace(broker, cause=cause) for broker in self.brokers))


class Answer(StrEnum):
    """What came of a request."""

    ACCEPTED = "accepted"
    # Nothing was changed; asking again without a change of something else is no use.
    REFUSED = "refused"
    # The reply was lost: it may or may not have been done. Look, and ask again.
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class Outcome:
    """The answer to a request; `message` says why, for people, where it was not accepted."""

    answer: Answer
    message: str = ""


ACCEPTED = Outcome(Answer.ACCEPTED)


class BrokerState(StrEnum):
    """What a broker is doing."""

    STARTING = "starting"
    # It serves.
    RUNNING = "running"
    STOPPING = "stopping"
    # It ended and is started again, at once or after a pause.
    WAITING = "waiting"
    # It refused its settings. It is not started again until it is applied anew.
    FAILED = "failed"


@dataclass(frozen=True)
class Endpoints:
    """Where a broker is reached inside the cell, as `host:port`; empty where it has no such one."""

    kafka: str
    metrics: str = ""
    link: str = ""


@dataclass(frozen=True)
class BrokerObservation:
    """A broker as the driver sees it.

    `failures` counts how often in a row it ended without having served; `name` is what the platform
    calls it, for people; `endpoints` are there while it runs; `pid` only where it is a process of
    this machine, `machine` where it runs on another. `lost`: the platform tells that its machine is
    gone or does not answer, and no end of it will be seen.
    """

    slot: int
    state: BrokerState
    name: str = ""
    endpoints: Endpoints | None = None
    failures: int = 0
    message: str = ""
    pid: int | None = None
    machine: str = ""
    lost: bool = False


@dataclass(frozen=True)
class ClusterObservation:
    """What is there of a cluster's brokers, by slot; none where nothing runs and nothing will.

    `restarts` counts brokers of it that ended by themselves, since this driver began. `known` is
    False where the platform could not be asked: then nothing follows from the rest.
    """

    cluster_id: str
    brokers: tuple[BrokerObservation, ...] = ()
    restarts: int = 0
    known: bool = True


class Driver(Protocol):
    """Runs brokers. One keeper uses it at a time; calls for different clusters never wait for
    each other.
    """

    def notify(self, call: Callable[[str], None]) -> None:
        """Has `call` be called with a cluster's id whenever `observe` would tell something new.

        It is called in the event loop, and never waits.
        """

    async def start(self) -> None:
        """Begins, and takes over what an earlier keeper left running. Call it before all else."""

    async def close(self) -> None:
        """Ends. What runs goes on, for the next keeper to take over."""

    def unwell(self) -> str | None:
        """Why the platform cannot be asked at this moment; None where it can."""

    async def hold_deletions(self, *, held: bool, reason: str) -> Outcome:
        """Has the platform refuse whatever would delete something of the cell, or no longer.

        Where it has no say in that, nothing is to be done.
        """

    async def clusters(self) -> frozenset[str]:
        """The clusters of which something is there, be it only files."""

    async def apply(self, plan: ClusterPlan) -> Outcome:
        """Has exactly these brokers run, and replaced when they end.

        A broker that runs already is left alone; its new settings count from its next start. A
        broker that is stopping is started again as soon as it ended. A slot that is no longer in
        the plan is stopped cleanly.
        """

    async def observe(self, cluster_id: str) -> ClusterObservation:
        """What is there. Cheap; never starts or changes anything."""

    async def stop(self, cluster_id: str, *, clean: bool) -> Outcome:
        """Has no broker of the cluster run.

        A clean stop ends by force after a bound of the driver's, and is only faster for the next
        start: a broker that is killed loses nothing either.
        """

    async def replace(self, cluster_id: str, slot: int) -> Outcome:
        """Ends a broker by force, so that another one takes its place: it serves nobody any more.

        Only for a broker that is applied; one that ended meanwhile is replaced anyway.
        """

    async def remove(self, cluster_id: str, *, break_glass: str = "") -> Outcome:
        """Stops by force, and removes what the driver keeps of the cluster: settings and logs.

        Only once its records are purged; they are not the driver's, and would stay. `break_glass`:
        by which audit entry it goes although deletions are held.
        """
