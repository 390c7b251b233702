"""The health of a cluster's brokers and of the whole cell: pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from brokers.etcd import MemberStatus
from provisioning.cell.drivers.base import BrokerState, ClusterObservation
from provisioning.cell.keeper.guard import Guard
from provisioning.cell.keeper.records import ClusterPhase, Status
from provisioning.cell.notes import CellHealth
from provisioning.cell.status.picture import Damage

# A broker that does not serve yet, or not again, counts as unhealthy only after this time.
START_MS = 30_000
# A broker that did not answer so often in a row counts as unhealthy.
UNANSWERED = 5
# The most names of machines, and of clusters, that are reported.
NAMED_MAX = 50
# The most damaged batches that are reported of a cluster, and of the cell.
DAMAGED_MAX_CLUSTER = 20
DAMAGED_MAX = 1_000


@dataclass(frozen=True)
class Beat:
    """The health of one cluster's brokers.

    `expected`: how many should run; `unhealthy`: how many of those do not serve; `machines`: the
    names of their lost machines; `known`: whether the platform could be asked.
    """

    expected: int = 0
    unhealthy: int = 0
    machines: frozenset[str] = frozenset()
    known: bool = True


@dataclass
class GuardState:
    """The guard of the cell, which all clusters read."""

    guard: Guard = field(default_factory=Guard)
    # Whether the state that an earlier keeper stored was read.
    known: bool = False

    @property
    def held(self) -> bool:
        """Whether deletions are held; also until the stored state was read."""
        return self.guard.held or not self.known


def beat_of(
    status: Status | None,
    observed: ClusterObservation,
    *,
    scale: int,
    unanswered: Mapping[int, int],
    absent: Mapping[int, int],
    now_ms: int,
) -> Beat:
    """The health of a cluster's brokers. Without a status, asleep or stopping, none should run.

    `absent`: by slot, since when (Unix ms) its broker does not serve.
    """
    machines = frozenset(b.machine for b in observed.brokers if b.lost and b.machine)
    if not observed.known:
        return Beat(known=False)
    if status is None or status.phase in {ClusterPhase.ASLEEP, ClusterPhase.STOPPING}:
        return Beat(machines=machines)
    well = {
        broker.slot
        for broker in observed.brokers
        if broker.state is BrokerState.RUNNING
        and not broker.lost
        and unanswered.get(broker.slot, 0) < UNANSWERED
    }
    if status.phase is not ClusterPhase.FAILED:
        refused = {b.slot for b in observed.brokers if b.state is BrokerState.FAILED}
        well |= {s for s, since_ms in absent.items() if 0 <= now_ms - since_ms < START_MS} - refused
    return Beat(scale, scale - len(well & set(range(scale))), machines)


def health_of_cell(
    beats: Iterable[Beat],
    guard: Guard,
    *,
    platform: str,
    orphans: Iterable[str],
    now_ms: int,
    etcd: MemberStatus | None = None,
) -> CellHealth:
    """The cell's health as it is reported. `etcd`: the status of its fullest member, if known."""
    all_beats = list(beats)
    expected, unhealthy = sum(b.expected for b in all_beats), sum(b.unhealthy for b in all_beats)
    machines = sorted({name for beat in all_beats for name in beat.machines})
    reason = ""
    if guard.held:
        reason = f"{unhealthy} of {expected} brokers that should run do not serve"
    return CellHealth(
        told_at_ms=now_ms,
        wanted=expected,
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


def with_damage(health: CellHealth, damaged: Mapping[str, Sequence[Damage] | None]) -> CellHealth:
    """The cell's health with the damaged batches that its brokers know of.

    `damaged`: by cluster; None where brokers run of which it is not known. Of many batches the
    first are named, and the clusters of the others count as unknown.
    """
    named: list[tuple[str, str, int, int]] = []
    topics: list[str] = []
    unknown = []
    for cluster_id, batches in sorted(damaged.items()):
        room = min(DAMAGED_MAX_CLUSTER, DAMAGED_MAX - len(named))
        for topic, partition, offset, topic_id in (batches or ())[:room]:
            named.append((cluster_id, topic, partition, offset))
            topics.append(topic_id)
        if batches is None or len(batches) > room:
            unknown.append(cluster_id)
    return replace(
        health,
        damaged=tuple(named),
        damaged_topics=tuple(topics),
        damage_unknown=tuple(unknown),
    )
