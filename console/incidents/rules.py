"""What is wrong, and what that means for incidents. Pure: facts in, changes out."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from console.incidents.choices import IncidentKind, IncidentState

OPERATION_STUCK = timedelta(minutes=15)
TASKS_DELAYED = timedelta(minutes=3)
# It opens anew, as the same one, where it comes back within so long.
SAME_STORY = timedelta(minutes=10)
# What may pass by itself is suspected for so long before it is told.
SUSPECTED_FOR = {
    IncidentKind.CELL_UNREACHABLE: timedelta(seconds=25),
    IncidentKind.TASKS_DELAYED: timedelta(seconds=25),
    IncidentKind.PLATFORM_UNREACHABLE: timedelta(seconds=25),
    IncidentKind.KEEPER_SILENT: timedelta(seconds=25),
}
# A keeper tells every quarter of a minute.
KEEPER_SILENT = timedelta(minutes=2)
# etcd refuses all writes at the quota. The file of its database is what counts there, so it is what
# is judged; by what is in use of the file, whether a defragmentation helps for long.
ETCD_FILE_PERCENT = 70
ETCD_IN_USE_PERCENT = 50
# What is said of a cluster follows from what its cell tells.
OF_CLUSTERS = frozenset({IncidentKind.BROKERS_CRASHING})
# And what the keeper tells, from what it told not long ago.
OF_KEEPERS = frozenset(
    {
        IncidentKind.BROKERS_UNHEALTHY,
        IncidentKind.MACHINE_LOST,
        IncidentKind.PLATFORM_UNREACHABLE,
    }
)
IT_IS_OVER = "It is over."
IT_IS_BACK = "It is back."

# Of the column.
SUBJECT_CHARS_MAX = 64

Key = tuple[str, str]


@dataclass(frozen=True, slots=True)
class ClusterFact:
    """A cluster that is wanted, and what its keeper wrote. `crashing`: see `restarts.py`."""

    id: str
    organization_id: str
    name: str
    phase: str
    message: str
    crashing: bool


@dataclass(frozen=True, slots=True)
class OperationFact:
    """An operation that has not ended."""

    id: str
    organization_id: str
    cluster_id: str
    type: str
    created_at: datetime


@dataclass(frozen=True, slots=True)
class UsageFact:
    """Hours of a cluster whose usage should be complete by now, and is not."""

    organization_id: str
    cluster_id: str
    hours: int
    first: datetime


@dataclass(frozen=True, slots=True)
class HealthFact:
    """What the keeper tells of a cell. `platform`: why what runs brokers cannot be asked, or empty.
    `etcd_file_bytes`: 0 where it is not known, `etcd_quota_bytes`: 0 where there is none.
    """

    told_at: datetime
    held: bool
    unhealthy: int
    wanted: int
    platform: str
    machines: Sequence[str]
    etcd_file_bytes: int = 0
    etcd_in_use_bytes: int = 0
    etcd_quota_bytes: int = 0


@dataclass(frozen=True, slots=True)
class Facts:
    """All that the rules judge by. `cell_answers`: without it `clusters` says nothing."""

    at: datetime
    cell: str
    cell_answers: bool
    clusters: Sequence[ClusterFact]
    operations: Sequence[OperationFact]
    usage: Sequence[UsageFact]
    # When the oldest task was enqueued that nobody has taken yet.
    oldest_task_at: datetime | None
    # What the keeper told last; None: it never did, or the cell does not answer.
    health: HealthFact | None = None
    # Whether the metadata store refuses all writes for want of space; None: not known.
    out_of_space: bool | None = False

    @property
    def size_known(self) -> bool:
        """Whether it is known how full the metadata store is."""
        told = self.keeper_speaks and self.health is not None and self.health.etcd_file_bytes > 0
        return told and self.out_of_space is not None

    @property
    def keeper_speaks(self) -> bool:
        """Whether what the keeper told is of now."""
        return self.health is not None and self.at - self.health.told_at < KEEPER_SILENT


@dataclass(frozen=True, slots=True)
class Finding:
    """Something is wrong. `subject` tells it from others of its kind.

    Without an `organization_id` it concerns the service, and its text names nobody.
    """

    kind: IncidentKind
    subject: str
    organization_id: str | None
    cluster_id: str
    title: str
    text: str

    @property
    def key(self) -> Key:
        """What an incident of it is found by."""
        return self.kind.value, self.subject


@dataclass(frozen=True, slots=True)
class Known:
    """An incident that is suspected, open, or was closed not long ago. `text`: its last update."""

    id: str
    kind: IncidentKind
    subject: str
    state: IncidentState
    # Of a suspected or open one when it began, of a closed one when it ended.
    since: datetime
    text: str

    @property
    def key(self) -> Key:
        """What a finding of it has."""
        return self.kind.value, self.subject


@dataclass(frozen=True, slots=True)
class Begin:
    """A new incident, of a state."""

    finding: Finding
    state: IncidentState


@dataclass(frozen=True, slots=True)
class Advance:
    """An incident changes its state, or with the same one its story goes on."""

    id: str
    state: IncidentState
    text: str


@dataclass(frozen=True, slots=True)
class Forget:
    """What was suspected was nothing."""

    id: str


Change = Begin | Advance | Forget


def findings(facts: Facts) -> list[Finding]:
    """What is wrong."""
    return [
        *_of_service(facts),
        *_of_keeper(facts),
        *_of_space(facts),
        *(_crashing(cluster) for cluster in facts.clusters if _crashes(cluster)),
        *(
            _stuck(operation)
            for operation in facts.operations
            if facts.at - operation.created_at >= OPERATION_STUCK
        ),
        *(_incomplete(each) for each in facts.usage),
    ]


def changes(
    found: Collection[Finding],
    known: Collection[Known],
    *,
    at: datetime,
    cell_answers: bool,
    keeper_speaks: bool = True,
    size_known: bool = True,
) -> list[Change]:
    """What to do, so that what is found has an open incident and nothing else has one."""
    wrong = {each.key: each for each in found}
    incidents = _latest(known)
    made: list[Change] = []
    for key, finding in sorted(wrong.items()):
        change = _of_finding(finding, incidents.get(key), at)
        if change is not None:
            made.append(change)
    for key, incident in sorted(incidents.items()):
        unknown = incident.kind in OF_CLUSTERS and not cell_answers
        unknown |= incident.kind in OF_KEEPERS and not keeper_speaks
        unknown |= incident.kind is IncidentKind.METADATA_FULL and not size_known
        if key in wrong or unknown or incident.state is IncidentState.CLOSED:
            continue
        if incident.state is IncidentState.SUSPECTED:
            made.append(Forget(incident.id))
        else:
            made.append(Advance(incident.id, IncidentState.CLOSED, IT_IS_OVER))
    return made


def _of_finding(finding: Finding, known: Known | None, at: datetime) -> Change | None:
    suspected_for = SUSPECTED_FOR.get(finding.kind, timedelta(0))
    if known is None or (known.state is IncidentState.CLOSED and at - known.since > SAME_STORY):
        first = IncidentState.SUSPECTED if suspected_for else IncidentState.OPEN
        return Begin(finding, first)
    if known.state is IncidentState.CLOSED:
        return Advance(known.id, IncidentState.OPEN, IT_IS_BACK)
    if known.state is IncidentState.SUSPECTED:
        lasted = at - known.since >= suspected_for
        return Advance(known.id, IncidentState.OPEN, finding.text) if lasted else None
    if finding.text not in {known.text, ""} and known.text != IT_IS_BACK:
        return Advance(known.id, IncidentState.OPEN, finding.text)
    return None


def _latest(known: Collection[Known]) -> Mapping[Key, Known]:
    """Of each key the one that is not closed, else the one that was closed last."""
    latest: dict[Key, Known] = {}
    for each in sorted(known, key=lambda one: (one.state is not IncidentState.CLOSED, one.since)):
        latest[each.key] = each
    return latest


def _of_service(facts: Facts) -> list[Finding]:
    found = []
    if not facts.cell_answers:
        found.append(
            Finding(
                kind=IncidentKind.CELL_UNREACHABLE,
                subject=facts.cell,
                organization_id=None,
                cluster_id="",
                title="Clusters cannot be managed",
                text=f"The metadata store of the cell {facts.cell} does not answer. Clients that "
                "are connected go on; changes and waking do not work.",
            )
        )
    oldest = facts.oldest_task_at
    if oldest is not None and facts.at - oldest >= TASKS_DELAYED:
        found.append(
            Finding(
                kind=IncidentKind.TASKS_DELAYED,
                subject="outbox",
                organization_id=None,
                cluster_id="",
                title="Changes take longer than usual",
                text="Background work is behind: new clusters, mails and operations are late. "
                "Nothing is lost, and clients are not concerned.",
            )
        )
    return found


def _of_keeper(facts: Facts) -> list[Finding]:
    health = facts.health
    if health is None:
        return []

    def finding(kind: IncidentKind, subject: str, title: str, text: str) -> Finding:
        return Finding(kind, subject[:SUBJECT_CHARS_MAX], None, "", title, text)

    if not facts.keeper_speaks:
        return [
            finding(
                IncidentKind.KEEPER_SILENT,
                facts.cell,
                "Clusters do not wake up",
                f"The keeper of the cell {facts.cell} has said nothing since "
                f"{health.told_at:%H:%M} UTC. Clusters that run go on.",
            )
        ]
    found = [
        finding(
            IncidentKind.MACHINE_LOST,
            f"{facts.cell}/{name}",
            "A machine is lost",
            "Brokers that ran on it are started on others. Acknowledged records are safe.",
        )
        for name in health.machines
    ]
    if health.platform:
        found.append(
            finding(
                IncidentKind.PLATFORM_UNREACHABLE,
                facts.cell,
                "Clusters do not wake up",
                f"What runs the brokers of the cell {facts.cell} does not answer. Clusters that "
                "run go on; those that sleep cannot be woken.",
            )
        )
    if health.held:
        found.append(
            finding(
                IncidentKind.BROKERS_UNHEALTHY,
                facts.cell,
                "Many clusters are not served",
                f"Too many brokers of the cell {facts.cell} are unhealthy. They are started "
                "again; until they are well nothing is deleted.",
            )
        )
    return found


def _of_space(facts: Facts) -> list[Finding]:
    """Texts without figures: each other text is a part of the story."""
    health = facts.health if facts.size_known else None
    cell = facts.cell
    title = "The metadata store is nearly full"
    if facts.out_of_space:
        title = "Clusters cannot be changed"
        text = (
            f"The metadata store of the cell {cell} has reached its quota and refuses all writes. "
            "Clients that are connected go on; changes and waking do not work. Its members must be "
            "defragmented or get a larger quota, and then its alarm NOSPACE must be disarmed."
        )
    elif health is None or not _reached(ETCD_FILE_PERCENT, health.etcd_file_bytes, health):
        return []
    elif _reached(ETCD_IN_USE_PERCENT, health.etcd_in_use_bytes, health):
        text = (
            f"The metadata store of the cell {cell} has grown to more than {ETCD_FILE_PERCENT} % "
            "of its quota, at which it refuses all writes. Most of that is in use: its members "
            "need a larger quota."
        )
    else:
        text = (
            f"The metadata store of the cell {cell} has grown to more than {ETCD_FILE_PERCENT} % "
            "of its quota, at which it refuses all writes. Much of that is free: a defragmentation "
            "of its members makes it smaller."
        )
    return [Finding(IncidentKind.METADATA_FULL, cell[:SUBJECT_CHARS_MAX], None, "", title, text)]


def _reached(percent: int, size_bytes: int, health: HealthFact) -> bool:
    quota_bytes = health.etcd_quota_bytes
    return quota_bytes > 0 and 100 * size_bytes >= percent * quota_bytes


def _crashes(cluster: ClusterFact) -> bool:
    return cluster.phase == "failed" or cluster.crashing


def _crashing(cluster: ClusterFact) -> Finding:
    return Finding(
        kind=IncidentKind.BROKERS_CRASHING,
        subject=cluster.id,
        organization_id=cluster.organization_id,
        cluster_id=cluster.id,
        title=f"Brokers of {cluster.name} crash again and again",
        text=cluster.message
        or "They are started again each time. Acknowledged records are safe; clients wait.",
    )


def _stuck(operation: OperationFact) -> Finding:
    minutes = int(OPERATION_STUCK.total_seconds() // 60)
    return Finding(
        kind=IncidentKind.OPERATION_STUCK,
        subject=operation.id,
        organization_id=operation.organization_id,
        cluster_id=operation.cluster_id,
        title=f"{operation.type} does not end",
        text=f"The operation {operation.id} runs for more than {minutes} minutes.",
    )


def _incomplete(usage: UsageFact) -> Finding:
    return Finding(
        kind=IncidentKind.USAGE_INCOMPLETE,
        subject=usage.cluster_id,
        organization_id=usage.organization_id,
        cluster_id=usage.cluster_id,
        title="Usage is not complete",
        text=f"Usage since {usage.first:%Y-%m-%d %H:00} UTC is missing for some hours. It is "
        "shown as provisional, and what never arrives is not billed.",
    )
