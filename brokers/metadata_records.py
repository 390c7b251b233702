"""What the metadata of a cell and of its clusters consists of, as values.

`revision` is the number of the transaction that last changed a record; two records that say the
same are equal whatever their revisions are. Times are milliseconds since 1970, in UTC.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, TypeVar

SpecState = Literal["active", "suspended", "deleted"]
Phase = Literal["asleep", "starting", "running", "stopping", "failed"]
RecordKind = Literal["spec", "status", "wake", "removal", "health", "sample"]
Mechanism = Literal["SCRAM-SHA-256", "SCRAM-SHA-512"]
TrafficLimitKind = Literal["refuse_produce", "refuse", "throttle"]
LaneState = Literal["live", "fenced", "sealed", "closed"]

# Each broker of a cluster knows all others, and has a port and a name of its own for clients. Of
# more that a stored spec says, as earlier releases accepted it, so many run.
BROKERS_PER_CLUSTER_MAX = 16

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterSpec:
    """What the control plane asks a cluster to be."""

    id: str
    name: str
    organization_id: str
    generation: int
    """Counts from 1 and grows with each change."""
    state: SpecState
    scale: int
    """How many brokers it has when awake, at most `BROKERS_PER_CLUSTER_MAX`."""
    idle_timeout_ms: int
    """It is put to sleep after this time without a client."""
    ports: tuple[int, ...]
    """The gateway's plain listeners on loopback: the bootstrap port, then a port for each slot,
    also for slots without a broker. A single one is slot 0's."""
    host: str
    """Its label in the names of TLS listeners: lowercase letters, digits and dashes."""
    connections_max: int
    wakes_per_minute_max: int
    deletions: tuple[tuple[int, int | None], ...] = ()
    """[from, until) in ms, ascending, in which it was deleted and could be restored; the last one
    may have no end yet. Nothing that it stores then is counted."""
    revision: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterLimits:
    """How much a cluster may have, by the names of the published limits; None: any number."""

    topics: int | None = None
    """Topics, without Kafka's internal ones."""
    partitions: int | None = None
    """Partitions of all these topics."""
    deleted_topics: int | None = None
    """Topics that are gone for good and of which usage may still be counted."""
    acls: int | None = None
    """Entries of the access control list."""
    credentials: int | None = None
    """Users with a password, without the service's own."""
    quotas: int | None = None
    """Entities that have quotas."""
    groups: int | None = None
    """Groups, with those that only have committed offsets."""
    group_members: int | None = None
    """Members of one group."""
    group_bytes: int | None = None
    """Bytes of a broker's memory that all groups take together, with members and offsets."""
    unbilled_bytes_per_second: int | None = None
    """Bytes of requests and answers that are not billed, of all clients in a second."""
    changes_per_second: int | None = None
    """Changes that all clients make in a second; those of 200 seconds may come at once."""
    usage_pairs_per_minute: int | None = None
    """Pairs of a topic and a principal of which usage is counted apart in a minute."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrafficLimit:
    """What brokers do with the produce and fetch of everybody but the service itself.

    Groups, offsets and administration go on. What the service does on behalf of somebody who pays
    is limited too.
    """

    kind: TrafficLimitKind
    """`refuse`: both are refused. `throttle`: both are slowed down."""
    reason: str
    """Why, for clients: producers get it as the error's text."""
    bytes_per_s: int | None = None
    """Only of `throttle`: bytes of both together, of the whole cluster; above 0."""


def limits_json(limits: ClusterLimits | None) -> dict[str, int] | None:
    """The limits as the core reads them; None: no limits."""
    if limits is None:
        return None
    return {name: value for name, value in asdict(limits).items() if value is not None}


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerStatus:
    """Where a broker is reached inside the cell. Addresses are `host:port`."""

    slot: int
    link: str
    """For gateways."""
    kafka: str
    """The internal Kafka listener, for the control plane and the keeper."""
    metrics: str
    pid: int | None = None
    """Its process, where the driver starts processes of this machine."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterStatus:
    """The state of a cluster, as the keeper sees it."""

    observed_generation: int
    phase: Phase
    since_ms: int
    brokers: tuple[BrokerStatus, ...] = ()
    connections: int = 0
    restarts: int = 0
    message: str = ""
    started_for: str = ""
    """What its brokers were started for, for logs: `WakeRequest.by`, or the spec's generation."""
    revision: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class WakeRequest:
    """Somebody wants a cluster to run."""

    requested_at_ms: int
    by: str
    """Who requested it, for logs: a word for the kind of process, then ids of what caused it."""
    revision: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class CellNote:
    """What control plane and keeper write for each other."""

    content: Mapping[str, Any]
    """Between the two; `v` is none of its keys."""
    revision: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """Groups and counters of a cluster as the keeper saw them, or a note, of an earlier release."""

    taken_at_ms: int
    content: Mapping[str, Any]
    """`v` and `taken_at_ms` are none of its keys."""
    revision: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A change of one of a cell's records; `record` is None where it was removed."""

    kind: RecordKind
    cluster_id: str
    revision: int
    record: ClusterSpec | ClusterStatus | WakeRequest | CellNote | Sample | None


class Listing(dict[str, T]):
    """All records of a kind by cluster id; watch behind `revision` to miss nothing."""

    def __init__(self, records: Mapping[str, T], revision: int) -> None:
        super().__init__(records)
        self.revision = revision


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterRecord:
    """A cluster as its brokers know it."""

    cluster_id: str
    """Kafka's: 22 characters of URL-safe base64."""
    created_at_ms: int
    scale: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Topic:
    """A topic."""

    name: str
    id: str
    """As Kafka writes it: 22 characters of URL-safe base64."""
    partitions: int
    partitions_led: int
    """How many of them a live broker leads: none of a cluster that sleeps."""
    replication_factor: int
    internal: bool
    created_at_ms: int
    configs: Mapping[str, str]
    """What is set; defaults are not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Partition:
    """A partition of a topic."""

    partition: int
    leader: int | None
    """Node id of the live broker that leads it."""
    leader_epoch: int


@dataclass(frozen=True, slots=True)
class RetentionExclusion:
    """What a topic's earlier rules of retention excluded, of what was written until they ended.

    Brokers hand none of it out again, whatever rule followed.
    """

    since_ms: int
    """Since when it was excluded at the earliest."""
    until_ms: int
    """When the last of these rules ended."""
    older_than_ms: int | None
    """Records with smaller timestamps were excluded; None: none by age."""
    bytes: int | None
    """How many bytes of a partition were kept; None: any size."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicHistory:
    """A topic that exists or existed, and for how long it had how many partitions."""

    id: str
    """32 hexadecimal digits, as in usage."""
    name: str
    internal: bool
    created_at_ms: int
    deleted_at_ms: int | None
    """When it was deleted for good; None where it exists or can be restored."""
    partition_counts: tuple[tuple[int, int], ...]
    """(Since when in ms since 1970 UTC, number of partitions), ascending."""
    retention_ms: int | None
    """The value that applies, or applied at the end; None keeps records of any age."""
    retention_bytes: int | None
    """Of a partition; None keeps any size."""
    compacted: bool
    deletions: tuple[tuple[int, int | None], ...] = ()
    """[from, until) in ms, ascending, in which it was deleted and could be restored, or was not
    known; the last one may have no end yet. Nothing that it stores then is counted."""
    retention_since_ms: int = 0
    """Since when the values of retention hold at the earliest; 0 where they never changed."""
    retention_before: tuple[int | None, int | None] | None = None
    """`retention_ms` and `retention_bytes` as they counted until then; None where the topic does
    not know them."""
    excluded: tuple[RetentionExclusion, ...] = ()
    """What earlier values excluded, ascending by when they ended."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeletedTopic:
    """A topic that was deleted and can be restored."""

    id: str
    """As Kafka writes it: 22 characters of URL-safe base64."""
    name: str
    """The name that it had."""
    partitions: int
    deleted_at_ms: int
    restorable_until_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class OrphanedTopic:
    """A topic on storage that the metadata, which came back from a backup, did not know."""

    id: str
    """As Kafka writes it: 22 characters of URL-safe base64."""
    name: str | None
    """The name that it had; None where storage does not have it."""
    partitions: int
    """How many of them storage has."""
    found_at_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class QuotaEntity:
    """The entity that quotas apply to: a user, a client id, both, or an address.

    None is no part of it; `""` stands for all that have none of their own.
    """

    user: str | None = None
    """Without `User:`."""
    client_id: str | None = None
    ip: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Quota:
    """The quotas of an entity."""

    entity: QuotaEntity
    values: Mapping[str, float]
    """By Kafka's names: `producer_byte_rate` and `consumer_byte_rate` in bytes a second,
    `request_percentage` of one thread, `connection_creation_rate` a second (of an `ip`); and
    `max_connections` at a time (of a `user`). Each is above 0."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProtocolChange:
    """A change that a client made over the Kafka protocol, as its broker noted it."""

    sequence: int
    """From 1, one more for each. A gap stands for changes that were dropped before they were
    read: a cluster keeps the last 2000."""
    at_ms: int
    principal: str
    """`User:<name>`."""
    client_id: str
    address: str
    """The client's own, also behind a gateway."""
    action: str
    """`topic.create`, `topic.update`, `topic.create_partitions`, `topic.delete`,
    `topic.delete_records`, `broker_configs.update`, `acl.create`, `acl.delete`,
    `user.set_password`, `user.remove_password`, `quota.set`, `quota.remove` or `group.delete`."""
    target_type: str
    """The part of `action` before the dot."""
    target: str
    detail: Mapping[str, str]
    connection: str = ""
    """The gateway's id of the client's connection; empty where it came through none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SealedEnd:
    """The end of a lane, which never changes."""

    file: int
    sequence: int
    """Of the last block that counts; no later block does."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LaneRecord:
    """A start of a broker, which is a lane."""

    incarnation: int
    state: LaneState
    """`fenced`: it may not write any more, and its end is still to be found."""
    started_at_ms: int
    sealed_end: SealedEnd | None
    """Of a `sealed` or `closed` one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicConfig:
    """A config of a topic."""

    name: str
    value: str | None
    default: str | None
    """The value that would apply if the topic did not set it."""
    source: str
    """Kafka's name: `DYNAMIC_TOPIC_CONFIG`, `DYNAMIC_DEFAULT_BROKER_CONFIG`,
    `STATIC_BROKER_CONFIG` or `DEFAULT_CONFIG`."""
    is_default: bool
    """Whether the topic does not set it."""
    type: str
    """Kafka's name: `BOOLEAN`, `STRING`, `INT`, `SHORT`, `LONG`, `DOUBLE` or `LIST`."""
    documentation: str


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Acl:
    """An entry of the access control list, by Kafka's names. All its fields identify it."""

    resource_type: str
    """`TOPIC`, `GROUP`, `CLUSTER`, `TRANSACTIONAL_ID`, `DELEGATION_TOKEN` or `USER`."""
    resource_name: str
    """A name, a prefix, `*`, or `kafka-cluster`."""
    pattern_type: str = "LITERAL"
    """`LITERAL` or `PREFIXED`."""
    principal: str
    """`User:<name>` or `User:*`."""
    host: str = "*"
    operation: str
    """`READ`, `WRITE`, `DESCRIBE`, …, or `ALL`."""
    permission: str = "ALLOW"
    """`ALLOW` or `DENY`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class User:
    """A user with a password for a mechanism."""

    user: str
    mechanism: Mechanism
    iterations: int


def spec_of(record: Mapping[str, Any], revision: int) -> ClusterSpec:
    """The specification in a JSON object."""
    deletions = tuple((since, until) for since, until in record.get("deletions", ()))
    values = {**record, "ports": tuple(record["ports"]), "deletions": deletions}
    return ClusterSpec(**values, revision=revision)


def lane_of(record: Mapping[str, Any]) -> LaneRecord:
    """The lane in a JSON object."""
    end = record["sealed_end"]
    return LaneRecord(**{**record, "sealed_end": None if end is None else SealedEnd(**end)})


def history_of(record: Mapping[str, Any]) -> TopicHistory:
    """The topic's history in a JSON object."""
    counts = tuple((at_ms, count) for at_ms, count in record["partition_counts"])
    deletions = tuple((since, until) for since, until in record["deletions"])
    before = record["retention_before"]
    return TopicHistory(
        **{
            **record,
            "partition_counts": counts,
            "deletions": deletions,
            "retention_before": None if before is None else (before[0], before[1]),
            "excluded": tuple(RetentionExclusion(*one) for one in record["excluded"]),
        }
    )


def quota_of(record: Mapping[str, Any]) -> Quota:
    """The quotas in a JSON object."""
    return Quota(entity=QuotaEntity(**record["entity"]), values=record["values"])


def status_of(record: Mapping[str, Any], revision: int) -> ClusterStatus:
    """The status in a JSON object."""
    brokers = tuple(BrokerStatus(**broker) for broker in record["brokers"])
    return ClusterStatus(**{**record, "brokers": brokers}, revision=revision)


def wake_of(record: Mapping[str, Any], revision: int) -> WakeRequest:
    """The wake request in a JSON object."""
    return WakeRequest(**record, revision=revision)


def note_of(record: Mapping[str, Any], revision: int) -> CellNote:
    """The note in a JSON object."""
    return CellNote(content=dict(record), revision=revision)


def sample_of(record: Mapping[str, Any], revision: int) -> Sample:
    """The sample in a JSON object."""
    content = {name: value for name, value in record.items() if name != "taken_at_ms"}
    return Sample(taken_at_ms=record["taken_at_ms"], content=content, revision=revision)


def stored_record(
    answer: dict[str, Any] | None, read: Callable[[Mapping[str, Any], int], T]
) -> T | None:
    """The record in an answer; None where there is none."""
    return None if answer is None else read(answer["record"], answer["revision"])


def listing_of(answer: dict[str, Any], read: Callable[[Mapping[str, Any], int], T]) -> Listing[T]:
    """The records in an answer."""
    records = answer["records"].items()
    parsed = {name: read(entry["record"], entry["revision"]) for name, entry in records}
    return Listing(parsed, answer["revision"])


def record_json(record: ClusterSpec | ClusterStatus) -> dict[str, Any]:
    """A record as it is stored, which is without its revision."""
    return {name: value for name, value in asdict(record).items() if name != "revision"}


RECORDS: Mapping[str, Callable[[Mapping[str, Any], int], Any]] = {
    "spec": spec_of,
    "status": status_of,
    "wake": wake_of,
    "removal": note_of,
    "health": note_of,
    "sample": sample_of,
}
