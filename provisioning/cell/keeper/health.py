"""How the brokers of a cluster and of the cell are: pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from brokers.etcd import MemberStatus
from provisioning.cell.drivers.base import BrokerState, ClusterObservation
from provisioning.cell.keeper.guard import Guard
from provisioning.cell.keeper.records import Phase, Status
from provisioning.cell.notes import CellHealth

# A broker may take so long to start before it counts as unhealthy.
START_MS = 30_000
# One that did not answer so often in a row does.
UNANSWERED = 5
# The most names of machines and clusters that are told.
NAMED_MAX = 50


@dataclass(frozen=True)
class Beat:
    """How a cluster's brokers are: how many should run, how many of them do not serve, and the
    machines of theirs that are lost. `known`: the platform told what there is.
    """

    wanted: int = 0
    unhealthy: int = 0
    machines: frozenset[str] = frozenset()
    known: bool = True


@dataclass
class Watch:
    """What the keeper last made of it, for all clusters."""

    guard: Guard = field(default_factory=Guard)
    # What an earlier keeper made of it was read.
    known: bool = False

    @property
    def held(self) -> bool:
        """Whether nothing may be deleted."""
        return self.guard.held or not self.known


def beat_of(
    status: Status | None,
    observed: ClusterObservation,
    *,
    scale: int,
    unanswered: Mapping[int, int],
    now_ms: int,
) -> Beat:
    """How a cluster's brokers are. Without a status, or asleep, none should run."""
    machines = frozenset(b.machine for b in observed.brokers if b.lost and b.machine)
    if not observed.known:
        return Beat(known=False)
    if status is None or status.phase in {Phase.ASLEEP, Phase.STOPPING}:
        return Beat(machines=machines)
    well = {
        broker.slot
        for broker in observed.brokers
        if broker.state is BrokerState.RUNNING
        and not broker.lost
        and unanswered.get(broker.slot, 0) < UNANSWERED
    }
    missing = scale - len(well & set(range(scale)))
    if status.phase is Phase.STARTING and 0 <= now_ms - status.since_ms < START_MS:
        missing = 0
    return Beat(scale, missing, machines)


def health_of_cell(
    beats: Iterable[Beat],
    guard: Guard,
    *,
    platform: str,
    orphans: Iterable[str],
    now_ms: int,
    etcd: MemberStatus | None = None,
) -> CellHealth:
    """What is told of a cell. `etcd`: its fullest member; None: not known."""
    found = list(beats)
    wanted, unhealthy = sum(b.wanted for b in found), sum(b.unhealthy for b in found)
    machines = sorted({name for beat in found for name in beat.machines})
    reason = ""
    if guard.held:
        reason = f"{unhealthy} of {wanted} brokers that should run do not serve"
    return CellHealth(
        told_at_ms=now_ms,
        wanted=wanted,
        unhealthy=unhealthy,
        held=guard.held,
        reason=reason,
        platform=platform,
        machines=tuple(machines[:NAMED_MAX]),
        orphans=tuple(sorted(orphans)[:NAMED_MAX]),
        etcd_file_bytes=0 if etcd is None else etcd.file_bytes,
        etcd_in_use_bytes=0 if etcd is None else etcd.in_use_bytes,
        etcd_quota_bytes=0 if etcd is None else etcd.quota_bytes,
    )
