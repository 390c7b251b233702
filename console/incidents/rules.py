"""Decides which incidents to open, update and close. Pure: facts in, changes out."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from console.incidents.choices import IncidentKind, IncidentState
from console.incidents.facts import (
    ClusterFact,
    HealthFact,
    InvoicesFact,
    MeterFact,
    MoneyFact,
    OperationFact,
    UsageFact,
)

OPERATION_STUCK = timedelta(minutes=15)
TASKS_DELAYED = timedelta(minutes=3)
# Where a fault comes back within this time, its incident opens again instead of a new one.
SAME_STORY = timedelta(minutes=10)
# Faults that may pass by themselves are suspected for this long before anybody is shown them.
SUSPECTED_FOR = {
    IncidentKind.CELL_UNREACHABLE: timedelta(seconds=25),
    IncidentKind.TASKS_DELAYED: timedelta(seconds=25),
    IncidentKind.PLATFORM_UNREACHABLE: timedelta(seconds=25),
    IncidentKind.KEEPER_SILENT: timedelta(seconds=25),
    # By then whoever was left out was tried again once, and a month that nobody began is begun.
    IncidentKind.INVOICES_MISSING: timedelta(minutes=15),
}
# A keeper reports every 15 seconds; after this time without a report it counts as silent.
KEEPER_SILENT = timedelta(minutes=2)
# etcd compares the size of its database file with the quota, and refuses all writes above it: so
# the incident depends on the file. How much of the file is in use decides what the text advises:
# where little is, a defragmentation helps for long.
ETCD_FILE_PERCENT = 70
ETCD_IN_USE_PERCENT = 50
# Incidents that only the metadata store of a cell can prove or disprove.
OF_CLUSTERS = frozenset({IncidentKind.BROKERS_CRASHING, IncidentKind.DAMAGED_BATCH})
# Incidents that only a recent report of the keeper can prove or disprove.
OF_KEEPERS = frozenset(
    {
        IncidentKind.BROKERS_UNHEALTHY,
        IncidentKind.DAMAGED_BATCH,
        IncidentKind.MACHINE_LOST,
        IncidentKind.PLATFORM_UNREACHABLE,
    }
)
IT_IS_OVER = "It is over."
IT_IS_BACK = "It is back."

# The length of the column `subject`.
SUBJECT_CHARS_MAX = 64
# Of a topic's name its beginning is in a title.
TITLE_NAME_CHARS = 120

Key = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Certainty:
    """What is known, and so proves that an incident is over.

    `cell_answers`: whether the cell's metadata store answers. `keeper_speaks`: whether the keeper
    reported not long ago. `size_known`: whether it is known how full the metadata store is.
    `damage_known`: the clusters of which every damaged batch that brokers know of is reported; the
    brokers of a cluster that does not run report nothing.
    """

    cell_answers: bool
    keeper_speaks: bool = True
    size_known: bool = True
    damage_known: frozenset[str] = frozenset()

    def covers(self, incident: Known) -> bool:
        """Whether enough is known to say that an incident is over."""
        if incident.kind in OF_CLUSTERS and not self.cell_answers:
            return False
        if incident.kind in OF_KEEPERS and not self.keeper_speaks:
            return False
        if incident.kind is IncidentKind.METADATA_FULL:
            return self.size_known
        if incident.kind is IncidentKind.DAMAGED_BATCH:
            cluster_id, *_ = incident.subject.split("/")
            return cluster_id in self.damage_known
        return True


@dataclass(frozen=True, slots=True)
class Facts:
    """All facts that the rules judge.

    `cell_answers`: whether the cell's metadata store answers; where it does not, `clusters` is
    empty and proves nothing.
    """

    at: datetime
    cell: str
    cell_answers: bool
    clusters: Sequence[ClusterFact]
    operations: Sequence[OperationFact]
    usage: Sequence[UsageFact]
    # When the oldest task that no worker has taken yet was enqueued; None: there is none.
    oldest_task_at: datetime | None
    # The keeper's last report; None: there never was one, or the cell does not answer.
    health: HealthFact | None = None
    # Whether the metadata store refuses all writes since it is full; None: it is not known.
    out_of_space: bool | None = False
    invoices: Sequence[InvoicesFact] = ()
    money: MoneyFact | None = None
    meter: MeterFact | None = None

    @property
    def keeper_speaks(self) -> bool:
        """Whether the keeper's last report is recent enough to be relied on."""
        return self.health is not None and self.at - self.health.reported_at < KEEPER_SILENT

    @property
    def certainty(self) -> Certainty:
        """What these facts can prove."""
        health = self.health if self.keeper_speaks else None
        reported = health is not None and health.etcd_file_bytes > 0
        unknown = () if health is None else health.damage_unknown
        running = {cluster.id for cluster in self.clusters if cluster.phase == "running"}
        return Certainty(
            cell_answers=self.cell_answers,
            keeper_speaks=self.keeper_speaks,
            size_known=reported and self.out_of_space is not None,
            damage_known=frozenset(running - set(unknown)),
        )


@dataclass(frozen=True, slots=True)
class Finding:
    """A fault that the facts show, with the words that its incident gets.

    `subject`: the id of the cluster, operation or cell that it is about. Where `organization_id` is
    None it concerns the service as a whole, and its text names no tenant.
    """

    kind: IncidentKind
    subject: str
    organization_id: str | None
    cluster_id: str
    title: str
    text: str

    @property
    def key(self) -> Key:
        """Kind and subject, which the incident of this finding has too."""
        return self.kind.value, self.subject


@dataclass(frozen=True, slots=True)
class Known:
    """An incident that is suspected, open, or closed not long ago. `text`: its last update."""

    id: str
    kind: IncidentKind
    subject: str
    state: IncidentState
    # When a suspected or open incident began, or when a closed one ended.
    since: datetime
    text: str

    @property
    def key(self) -> Key:
        """Kind and subject, which the finding of this incident has too."""
        return self.kind.value, self.subject


@dataclass(frozen=True, slots=True)
class Begin:
    """A new incident begins, suspected or open."""

    finding: Finding
    state: IncidentState


@dataclass(frozen=True, slots=True)
class Advance:
    """An incident gets another state, another update, or both. `text`: the update."""

    id: str
    state: IncidentState
    text: str


@dataclass(frozen=True, slots=True)
class Forget:
    """A suspected incident is deleted: its fault passed by itself, and nobody was shown it."""

    id: str


Change = Begin | Advance | Forget


def find_problems(facts: Facts) -> list[Finding]:
    """Returns every fault that the facts show."""
    return [
        *_service_findings(facts),
        *_keeper_findings(facts),
        *_space_findings(facts),
        *(_crash_finding(cluster) for cluster in facts.clusters if _is_crashing(cluster)),
        *(
            _stuck_finding(operation)
            for operation in facts.operations
            if facts.at - operation.created_at >= OPERATION_STUCK
        ),
        *(_usage_finding(usage) for usage in facts.usage),
        *_damage_findings(facts),
        *(_invoices_finding(month) for month in facts.invoices),
        *_money_findings(facts.money),
        *_meter_findings(facts.meter, facts.cell),
    ]


def decide_changes(
    present: Collection[Finding],
    known: Collection[Known],
    *,
    at: datetime,
    certainty: Certainty,
) -> list[Change]:
    """Returns the changes after which every finding has an incident, and nothing else has one.

    `present`: the findings. `known`: the incidents so far. Those of which not enough is known stay
    as they are.
    """
    wrong = {finding.key: finding for finding in present}
    incidents = _latest_by_key(known)
    changes_due: list[Change] = []
    for key, finding in sorted(wrong.items()):
        change = _change_for_finding(finding, incidents.get(key), at)
        if change is not None:
            changes_due.append(change)
    for key, incident in sorted(incidents.items()):
        if key in wrong or incident.state is IncidentState.CLOSED:
            continue
        if not certainty.covers(incident):
            continue
        if incident.state is IncidentState.SUSPECTED:
            changes_due.append(Forget(incident.id))
        else:
            changes_due.append(Advance(incident.id, IncidentState.CLOSED, IT_IS_OVER))
    return changes_due


def _change_for_finding(finding: Finding, known: Known | None, at: datetime) -> Change | None:
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


def _latest_by_key(known: Collection[Known]) -> Mapping[Key, Known]:
    """Returns for each key the incident that is not closed, or else the one that closed last."""
    latest: dict[Key, Known] = {}

    def rank(incident: Known) -> tuple[bool, datetime]:
        return incident.state is not IncidentState.CLOSED, incident.since

    for incident in sorted(known, key=rank):
        latest[incident.key] = incident
    return latest


def _service_findings(facts: Facts) -> list[Finding]:
    findings = []
    if not facts.cell_answers:
        findings.append(
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
        findings.append(
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
    return findings


def _keeper_findings(facts: Facts) -> list[Finding]:
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
                f"The keeper of the cell {facts.cell} has not reported since "
                f"{health.reported_at:%H:%M} UTC. Clusters that run go on.",
            )
        ]
    findings = [
        finding(
            IncidentKind.MACHINE_LOST,
            f"{facts.cell}/{name}",
            "A machine is lost",
            "Brokers that ran on it are started on others. Acknowledged records are safe.",
        )
        for name in health.machines
    ]
    if health.platform:
        findings.append(
            finding(
                IncidentKind.PLATFORM_UNREACHABLE,
                facts.cell,
                "Clusters do not wake up",
                f"What runs the brokers of the cell {facts.cell} does not answer. Clusters that "
                "run go on; those that sleep cannot be woken.",
            )
        )
    if health.held:
        findings.append(
            finding(
                IncidentKind.BROKERS_UNHEALTHY,
                facts.cell,
                "Many clusters are not served",
                f"Too many brokers of the cell {facts.cell} are unhealthy. They are started "
                "again; until they are well nothing is deleted.",
            )
        )
    return findings


def _space_findings(facts: Facts) -> list[Finding]:
    """The texts hold no figures that change: every other text would be another update."""
    health = facts.health if facts.certainty.size_known else None
    cell = facts.cell
    title = "The metadata store is nearly full"
    if facts.out_of_space:
        title = "Clusters cannot be changed"
        text = (
            f"The metadata store of the cell {cell} has reached its quota and refuses all writes. "
            "Clients that are connected go on; changes and waking do not work. Its members must be "
            "defragmented or get a larger quota, and then its alarm NOSPACE must be disarmed."
        )
    elif health is None or not _has_reached(ETCD_FILE_PERCENT, health.etcd_file_bytes, health):
        return []
    elif _has_reached(ETCD_IN_USE_PERCENT, health.etcd_in_use_bytes, health):
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


def _invoices_finding(fact: InvoicesFact) -> Finding:
    """Staff alone read it, and yet it names no tenant: the list of missing invoices does."""
    if fact.reason:
        text = f"Nobody gets an invoice of {fact.month}: {fact.reason.removesuffix('.')}."
    else:
        customers = "organization has" if fact.missing == 1 else "organizations have"
        text = f"{fact.missing} {customers} no invoice of {fact.month}; the others have theirs."
    return Finding(
        kind=IncidentKind.INVOICES_MISSING,
        subject=fact.month,
        organization_id=None,
        cluster_id="",
        title=f"Invoices of {fact.month} are missing",
        text=f"{text} The page of staff lists the reasons. It is tried again by itself.",
    )


def _money_findings(fact: MoneyFact | None) -> list[Finding]:
    """Staff alone read it. The text has no count, which changes: that is in the list of staff."""
    if fact is None or not (fact.differences or fact.reason):
        return []
    text = "The ledger, the invoices and Stripe do not agree; the page of staff lists in what. "
    return [
        Finding(
            kind=IncidentKind.MONEY_DIFFERS,
            subject="money",
            organization_id=None,
            cluster_id="",
            title="Money does not reconcile",
            text=f"{text if fact.differences else ''}{fact.reason}".strip(),
        )
    ]


def _meter_findings(fact: MeterFact | None, cell: str) -> list[Finding]:
    """As of money, without counts: `manage.py usage_status` names what differs."""
    if fact is None or not (fact.totals_differ or fact.days):
        return []
    texts = []
    if fact.totals_differ:
        texts.append("Running totals are not what their rows sum to.")
    if fact.days:
        days = ", ".join(f"{day}" for day in fact.days)
        texts.append(f"What usage files and the log say of a day differs: {days}.")
    return [
        Finding(
            kind=IncidentKind.USAGE_DIFFERS,
            subject=cell[:SUBJECT_CHARS_MAX],
            organization_id=None,
            cluster_id="",
            title="Usage does not reconcile",
            text=f"{' '.join(texts)} `manage.py usage_status` lists in what.",
        )
    ]


def _damage_findings(facts: Facts) -> list[Finding]:
    """A damaged batch stays an incident while its cluster sleeps: the keeper remembers it."""
    if facts.health is None or not facts.keeper_speaks:
        return []
    clusters = {cluster.id: cluster for cluster in facts.clusters}
    findings = []
    for damage in facts.health.damaged:
        cluster = clusters.get(damage.cluster_id)
        if cluster is None:
            continue
        name = damage.topic
        if len(name) > TITLE_NAME_CHARS:
            name = f"{name[:TITLE_NAME_CHARS]}…"
        findings.append(
            Finding(
                kind=IncidentKind.DAMAGED_BATCH,
                subject=damage.subject,
                organization_id=cluster.organization_id,
                cluster_id=cluster.id,
                title=f"A batch of {name} is damaged",
                text=f"The topic {damage.topic} of the cluster {cluster.name} has a damaged batch: "
                f"partition {damage.partition}, offset {damage.offset}. Consumers may stop before "
                "it. The service stored it as its producer sent it. Consumers go on once the "
                "partition begins behind it; what would be deleted with it says "
                f"`freshet topic skip-damaged {damage.topic} --partition {damage.partition} "
                f"--offset {damage.offset}`.",
            )
        )
    return findings


def _has_reached(percent: int, size_bytes: int, health: HealthFact) -> bool:
    quota_bytes = health.etcd_quota_bytes
    return quota_bytes > 0 and 100 * size_bytes >= percent * quota_bytes


def _is_crashing(cluster: ClusterFact) -> bool:
    return cluster.phase == "failed" or cluster.crashing


def _crash_finding(cluster: ClusterFact) -> Finding:
    return Finding(
        kind=IncidentKind.BROKERS_CRASHING,
        subject=cluster.id,
        organization_id=cluster.organization_id,
        cluster_id=cluster.id,
        title=f"Brokers of {cluster.name} crash again and again",
        text=cluster.message
        or "They are started again each time. Acknowledged records are safe; clients wait.",
    )


def _stuck_finding(operation: OperationFact) -> Finding:
    minutes = int(OPERATION_STUCK.total_seconds() // 60)
    return Finding(
        kind=IncidentKind.OPERATION_STUCK,
        subject=operation.id,
        organization_id=operation.organization_id,
        cluster_id=operation.cluster_id,
        title=f"{operation.type} does not end",
        text=f"The operation {operation.id} runs for more than {minutes} minutes.",
    )


def _usage_finding(usage: UsageFact) -> Finding:
    return Finding(
        kind=IncidentKind.USAGE_INCOMPLETE,
        subject=usage.cluster_id,
        organization_id=usage.organization_id,
        cluster_id=usage.cluster_id,
        title="Usage is not complete",
        text=f"Usage since {usage.first:%Y-%m-%d %H:00} UTC is missing for some hours. It is "
        "shown as provisional, and what never arrives is not billed.",
    )
