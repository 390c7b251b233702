"""The interface of drivers, which run brokers as processes of this machine or in Kubernetes.

The keeper requests which brokers shall run, and the driver keeps them running until the next
request: a broker that ends by itself is replaced without a further request. A request returns at
once and does not wait for its effect. `observe` shows the effect, and the callback that is passed
to `Driver.notify` says when to look. So a lost reply does no harm: every request may be repeated.

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

    - `settings` are those of `docs/reference/broker-settings.md`, by section. They hold secrets: a
      driver hands them to the broker and to nobody else, and they do not show in `repr`.
    - `cause` says why the broker is started. A driver passes it to the broker as
      `broker.started_for`, for its log. Plans that differ only in their cause are equal.
    - `files` are placed beside the settings of a broker that does not see the files which its
      settings name: content by file name.
    """

    cluster_id: str
    slot: int
    settings: Settings = field(repr=False)
    cause: str = field(default="", compare=False)
    files: Mapping[str, bytes] = field(default_factory=dict, repr=False)

    def start_settings(self) -> Settings:
        """The settings for a broker that starts now: the plan's, and `broker.started_for`."""
        broker = {**self.settings.get("broker", {}), "started_for": self.cause}
        return {**self.settings, "broker": broker} if self.cause else self.settings


@dataclass(frozen=True)
class ClusterPlan:
    """All brokers that a cluster shall have. To have none, stop the cluster instead."""

    cluster_id: str
    brokers: tuple[BrokerPlan, ...]

    def __post_init__(self) -> None:
        """Raises `ValueError` for a plan that no driver could carry out."""
        slots = [broker.slot for broker in self.brokers]
        if not slots or len(set(slots)) != len(slots):
            message = f"slots {slots} of {self.cluster_id}: give at least one, and none twice"
            raise ValueError(message)
        if any(broker.cluster_id != self.cluster_id for broker in self.brokers):
            message = f"the plan of {self.cluster_id} has a broker of another cluster"
            raise ValueError(message)

    def caused_by(self, cause: str) -> ClusterPlan:
        """The same plan, with `cause` as the reason why its brokers are started."""
        return replace(self, brokers=tuple(replace(broker, cause=cause) for broker in self.brokers))


class Answer(StrEnum):
    """What the driver answered to a request."""

    ACCEPTED = "accepted"
    # Nothing was changed, and the same request is refused until something else changes.
    REFUSED = "refused"
    # The reply was lost, so the request may or may not have taken effect. Observe, and repeat it.
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class Outcome:
    """The answer to a request; `message` explains to people why it was not accepted."""

    answer: Answer
    message: str = ""


ACCEPTED = Outcome(Answer.ACCEPTED)


class BrokerState(StrEnum):
    """What a broker is doing."""

    STARTING = "starting"
    # It serves clients.
    RUNNING = "running"
    STOPPING = "stopping"
    # It ended, and the driver starts it again, at once or after a pause.
    WAITING = "waiting"
    # It refused its settings. The driver does not start it again until the next `apply`.
    FAILED = "failed"


@dataclass(frozen=True)
class Endpoints:
    """A broker's listeners inside the cell as `host:port`; empty where it has no such listener."""

    kafka: str
    metrics: str = ""
    link: str = ""


@dataclass(frozen=True)
class BrokerObservation:
    """A broker as the driver sees it.

    - `name` is what the platform calls it, for people.
    - `endpoints` are set while it runs.
    - `failures` counts how often in a row it ended without having served.
    - `pid` is set where it is a process of this machine, `machine` where it runs on another one.
    - `lost`: the platform says that its machine is gone or does not answer, so the end of the
      broker will never be observed.
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
    """The brokers of a cluster, sorted by slot; none where nothing runs and nothing will.

    `restarts` counts the cluster's brokers that ended by themselves since this driver started.
    `known` is False where the platform could not be asked: then the other fields mean nothing.
    """

    cluster_id: str
    brokers: tuple[BrokerObservation, ...] = ()
    restarts: int = 0
    known: bool = True


class Driver(Protocol):
    """Runs brokers. One keeper uses it at a time, and calls for different clusters never wait for
    each other.
    """

    def notify(self, call: Callable[[str], None]) -> None:
        """Registers a callback for changes.

        The driver calls it in the event loop with a cluster's id whenever `observe` of that cluster
        would return something new. The callback must not block.
        """

    async def start(self) -> None:
        """Starts, and takes over brokers that an earlier keeper left running. Call it first."""

    async def close(self) -> None:
        """Stops the driver. Brokers go on running, and the next keeper takes them over."""

    def unwell(self) -> str | None:
        """Why the platform cannot be asked now; None where it can."""

    async def hold_deletions(self, *, held: bool, reason: str) -> Outcome:
        """Has the platform refuse all deletions in the cell (`held`), or allow them again.

        A driver whose platform cannot refuse deletions accepts the request and does nothing.
        """

    async def clusters(self) -> frozenset[str]:
        """The clusters that have anything on this platform, even if it is only files."""

    async def apply(self, plan: ClusterPlan) -> Outcome:
        """Runs exactly these brokers, and replaces those that end.

        A broker that runs already is left alone; its new settings count from its next start. A
        broker that is stopping is started again as soon as it has ended. A broker whose slot is not
        in the plan is stopped cleanly.
        """

    async def observe(self, cluster_id: str) -> ClusterObservation:
        """The cluster's brokers as they are now. It is cheap and changes nothing."""

    async def stop(self, cluster_id: str, *, clean: bool) -> Outcome:
        """Stops all brokers of the cluster.

        A clean stop turns into a kill after the driver's own time limit. A broker that is killed
        loses no records either; after a clean stop the next start is only faster.
        """

    async def replace(self, cluster_id: str, slot: int) -> Outcome:
        """Kills a broker that serves nobody any more, so that another one takes its place.

        The request is refused for a slot that is not in the applied plan. A broker that has ended
        meanwhile is replaced without this call.
        """

    async def remove(self, cluster_id: str, *, break_glass: str = "") -> Outcome:
        """Kills the cluster's brokers, and removes its settings and logs from the platform.

        Call it only once the cluster's records are purged: the driver does not remove those.
        `break_glass` is the audit entry that permits the removal while deletions are held.
        """
