"""The engine, compiled. What is documented here is checked against it by `mypy.stubtest`."""

from collections.abc import Mapping, Sequence
from typing import TypedDict, final

__all__ = [
    "BrokerError",
    "BrokerProcess",
    "ClusterMetadata",
    "CompactedError",
    "ConfigError",
    "ConflictError",
    "CorruptError",
    "ExistsError",
    "GatewayProcess",
    "InvalidError",
    "KafkaBatch",
    "KafkaClient",
    "KafkaError",
    "KafkaPartition",
    "LimitReachedError",
    "Metadata",
    "MetadataError",
    "NotFoundError",
    "StartError",
    "StoppedError",
    "StorageError",
    "TooLargeError",
    "UnavailableError",
    "UnknownOutcomeError",
    "UsageReader",
    "default_gateway_settings",
    "default_settings",
    "inspect",
    "is_remote",
    "resolve_gateway_settings",
    "resolve_settings",
    "start_logs",
    "version",
]

class BrokerError(Exception):
    """Something about a broker failed.

    `action` says what its catcher should do: `retry` the same call later, `refresh` what it knows
    and decide anew, `correct` what it asked for or the settings, `stop`, or `report` it: something
    is damaged, or this program is at fault.
    """

    action: str

class ConfigError(BrokerError):
    """Settings that are refused; the text names line and key."""

class StorageError(BrokerError):
    """Storage that cannot be used."""

class StartError(BrokerError):
    """A broker that did not start; another start may succeed."""

class StoppedError(BrokerError):
    """A broker that does not run."""

class KafkaError(BrokerError):
    """A call to a cluster's brokers failed.

    `kind`: `refused` (a broker answered with an error), `passing` (with one that passes by itself),
    `unreachable`, `timed_out` (in both cases, and in the second, the call may have taken effect),
    `undecodable`, or `busy`. `name` is Kafka's name of the error that a broker answered.
    """

    kind: str
    name: str | None

class MetadataError(BrokerError):
    """A call on metadata failed."""

    kind: str
    field: str | None

class NotFoundError(MetadataError):
    """There is nothing of this name."""

class ExistsError(MetadataError):
    """There is something of this name already."""

class ConflictError(MetadataError):
    """Somebody else changed the record meanwhile, or a newer one is stored: read again."""

class InvalidError(MetadataError):
    """An argument is wrong; `field` says which."""

class LimitReachedError(MetadataError):
    """A limit of the cluster leaves no room; nothing was changed."""

    name: str
    limit: int
    used: int

class TooLargeError(MetadataError):
    """A record would be too large."""

class UnavailableError(MetadataError):
    """Nothing happened; the same call may be made again."""

class UnknownOutcomeError(MetadataError):
    """It may have happened or not: read again."""

class CompactedError(MetadataError):
    """The history of changes does not reach back so far: list, and watch from there."""

class CorruptError(MetadataError):
    """A stored record cannot be read: it is of a newer release, or damaged."""

@final
class BrokerProcess:
    """A broker in this process. Calls that wait release the interpreter's lock."""

    def __new__(cls, settings: str) -> BrokerProcess:
        """A broker with these settings (TOML) that does not run yet. Raises `ConfigError`."""

    def start(self) -> None:
        """Starts it; it serves when this returns. Raises `StartError` or `StorageError`."""

    def stop(self, timeout_s: float = 30.0) -> None:
        """Stops cleanly; after `timeout_s` seconds what is unfinished is dropped."""

    def kill(self) -> None:
        """Drops everything without any clean stop, as a killed process does."""

    def ended(self, timeout_s: float) -> str | None:
        """Waits until the broker stood down and says why; None once `timeout_s` seconds passed."""

    @property
    def bootstrap(self) -> str:
        """`host:port` for Kafka clients. Raises `StoppedError`."""

    @property
    def metrics_address(self) -> str | None:
        """`host:port` of `/metrics` and `/healthz`; None where they are off."""

    @property
    def link_address(self) -> str | None:
        """`host:port` for gateways; None where there is no such listener."""

    @property
    def incarnation(self) -> int:
        """The incarnation: the number of this start among all of its cluster's brokers."""

class _Member(TypedDict):
    """A member of a group: `assignment` has its partitions by topic, sorted."""

    member_id: str
    instance_id: str | None
    client_id: str
    host: str
    assignment: list[tuple[str, list[int]]]
    truncated: bool
    undecodable: bool

class _Group(TypedDict):
    """A group. `fault` says why its members are not known; None where they are."""

    group: str
    state: str
    protocol_type: str
    protocol: str
    coordinator: int | None
    fault: str | None
    members: list[_Member]

# Offset, moment (Unix ms; −1 for none), key, its size, value, its size, headers (name, value, its
# size), bytes in all. Key, values and names may be cut.
_Record = tuple[
    int, int, bytes | None, int, bytes | None, int, list[tuple[bytes, bytes | None, int]], int
]

@final
class KafkaClient:
    """The brokers of one cluster. `provisioning.kafka` wraps it.

    Calls may be made from any thread. They release the interpreter's lock, end by `timeout_s` or by
    a signal, and raise `KafkaError`.
    """

    def __new__(
        cls,
        bootstrap: Sequence[str],
        *,
        user: str,
        password: str,
        mechanism: str,
        client_id: str,
    ) -> KafkaClient:
        """A client of these addresses, which connects when it is used. Raises `ConfigError`."""

    def paid_by(self, payer: str) -> KafkaClient:
        """The same client, whose calls brokers meter for this principal; connections are shared."""

    @property
    def idle_connections(self) -> int:
        """Connections that wait for a request."""

    def list_groups(self, timeout_s: float) -> list[tuple[str, str, str, str]]:
        """Id, protocol type, state and type of every group, sorted."""

    def describe_groups(
        self, names: Sequence[str], assigned_max: int, timeout_s: float
    ) -> list[_Group]:
        """Groups with members, of whose partitions at most `assigned_max` in all are returned."""

    def committed_offsets(
        self, names: Sequence[str], timeout_s: float
    ) -> list[dict[tuple[str, int], int] | None]:
        """Committed offsets by partition, for each group; None where they cannot be decoded."""

    def commit_offsets(
        self, group: str, offsets: Mapping[tuple[str, int], int], timeout_s: float
    ) -> None:
        """Commits offsets of a group without members."""

    def delete_group(self, group: str, timeout_s: float) -> None:
        """Deletes a group without members, with its offsets."""

    def partitions(self, topics: Sequence[str] | None, timeout_s: float) -> dict[str, list[int]]:
        """The partitions of those topics that exist; of all topics for None."""

    def list_offsets(
        self, specs: Mapping[tuple[str, int], int], timeout_s: float
    ) -> dict[tuple[str, int], int | None]:
        """Offsets by partition: for −1 the end, −2 the beginning, else of a moment (Unix ms)."""

    def delete_records(
        self, before: Mapping[tuple[str, int], int], timeout_s: float
    ) -> dict[tuple[str, int], int]:
        """Deletes records before offsets (−1 is the end). Returns where partitions begin now."""

    def fetch(
        self,
        positions: Mapping[tuple[str, int], int],
        *,
        bytes_max: int,
        partition_bytes_max: int,
        wait_s: float,
        committed_only: bool,
        timeout_s: float,
    ) -> list[KafkaPartition]:
        """What partitions hold from offsets on; waits `wait_s` where there is nothing yet."""

    def produce(
        self,
        topic: str,
        *,
        key: bytes | None,
        value: bytes | None,
        headers: Sequence[tuple[str, bytes | None]],
        partition: int | None,
        timeout_s: float,
    ) -> tuple[int, int, int]:
        """Produces one record, once. Returns its partition, its offset and its moment (Unix ms)."""

    def acls(
        self, principal: str, timeout_s: float
    ) -> list[tuple[int, str, int, str, str, int, int]]:
        """A principal's ACLs by Kafka's codes: type, name, pattern, principal, host, operation,
        permission.
        """

    def has_user(self, user: str, timeout_s: float) -> bool:
        """Whether a user has credentials."""

@final
class KafkaPartition:
    """What was fetched of a partition. `end` is the offset of its next new record."""

    @property
    def topic(self) -> str: ...
    @property
    def partition(self) -> int: ...
    @property
    def end(self) -> int: ...
    @property
    def start(self) -> int: ...
    @property
    def out_of_range(self) -> bool: ...
    def next_batch(self) -> KafkaBatch | None:
        """The next batch; None at the end of what was fetched. Raises `KafkaError`."""

@final
class KafkaBatch:
    """A batch, by its header. `timestamp_ms` is the moment of its first record, or its append."""

    @property
    def first_offset(self) -> int: ...
    @property
    def next_offset(self) -> int: ...
    @property
    def records(self) -> int: ...
    @property
    def crc(self) -> int: ...
    @property
    def timestamp_ms(self) -> int: ...
    @property
    def append_time(self) -> bool: ...
    @property
    def control(self) -> bool: ...
    def open(self, timeout_s: float) -> tuple[str | None, float]:
        """Decodes it, once, on a thread of low priority. Returns `undecodable`, `too_slow` or
        `too_large`, or None if it can, and the CPU seconds that it took.
        """

    def take(self, from_offset: int, count: int, bytes_max: int, shown_max: int) -> list[_Record]:
        """The next records from an offset on, of at most `bytes_max` bytes unless the first has
        more. Keys, values and names are cut to `shown_max` bytes.
        """

@final
class Metadata:
    """The metadata store of a cell. `brokers.metadata` wraps it."""

    def __new__(cls, location: str) -> Metadata:
        """Opens the store at an address of etcd, or in an SQLite file, which is made if missing."""

    def call(self, request: str) -> str:
        """A call on the cell's own records, as JSON. Raises `MetadataError`."""

    def watch(self, prefixes: Sequence[str], after_revision: int, timeout_s: float) -> str:
        """Waits for changes of the cell's records behind a revision; `[]` after `timeout_s`."""

    def interrupt(self) -> None:
        """Ends the watches in which other threads wait."""

    def cluster(self, cluster: str, broker_configs: Mapping[str, str]) -> ClusterMetadata:
        """The metadata of a cluster whose brokers start with these configs."""

@final
class ClusterMetadata:
    """The metadata of a cluster. `brokers.metadata` wraps it."""

    def call(self, request: str, timeout_s: float | None = None) -> str | None:
        """A call as JSON; None where it takes longer than `timeout_s`. Raises `MetadataError`."""

@final
class GatewayProcess:
    """A gateway in this process. Calls that wait release the interpreter's lock."""

    def __new__(cls, settings: str) -> GatewayProcess:
        """A gateway with these settings (TOML) that does not run yet. Raises `ConfigError`."""

    def start(self) -> None:
        """Starts it, with its logs on standard error; it serves when this returns.

        Raises `StartError`, `StorageError`, or `ConfigError` for its secret or certificate.
        """

    def stop(self, timeout_s: float = 30.0) -> None:
        """Takes no more connections, waits until open ones have no request left, ends the rest.

        That takes at most `limits.drain_timeout_ms`, and at most `timeout_s` seconds.
        """

    @property
    def plain_listeners(self) -> int:
        """Ports that were listened on without TLS when it started. Raises `StoppedError`."""

    @property
    def tls_address(self) -> str | None:
        """`host:port` of the listener with TLS; None where it is off."""

    @property
    def metrics_address(self) -> str | None:
        """`host:port` of `/metrics` and `/healthz`; None where they are off."""

class _LaneReading(TypedDict):
    """The fields of `brokers.usage.LaneReading`, which describes them; a test compares the two."""

    rows: int
    file: bytes
    sequence: bytes
    written_at_ms: bytes
    topic: bytes
    partition: bytes
    principal: bytes
    meter: bytes
    quantity: bytes
    cumulative: bytes
    topics: tuple[str, ...]
    principals: tuple[str, ...]
    last_sequence: int
    last_file: int
    covered_until_ms: int
    ended: bool
    more: bool
    unsplit_since_ms: int | None
    gap: tuple[int, int] | None

@final
class UsageReader:
    """Reads what clusters used. `brokers.usage` wraps it, and names the members of its tuples."""

    def __new__(cls, dfs: str, bucket: str) -> UsageReader:
        """A reader of the clusters below these folders."""

    def lanes(self, cluster: str) -> list[tuple[int, list[int], list[int]]]:
        """Incarnation, numbers of indexes, numbers of files with records. Raises `StorageError`."""

    def read_lane(
        self,
        cluster: str,
        incarnation: int,
        *,
        after_sequence: int = 0,
        after_file: int = 0,
        final: bool = False,
        sealed_end: tuple[int, int] | None = None,
    ) -> _LaneReading:
        """Rows of usage of a lane. `sealed_end` is file and sequence. Raises `StorageError`."""

    def drop_indexes(self, cluster: str, incarnation: int, below_file: int) -> int:
        """Removes indexes that were recorded; returns how many. Raises `StorageError`."""

    def mark_metered(self, cluster: str, incarnation: int) -> bool:
        """Marks a lane as recorded; returns whether it has the mark. Raises `StorageError`."""

    def manifests(
        self, cluster: str, known: Mapping[tuple[str, int], str]
    ) -> list[
        tuple[
            str,
            int,
            str,
            int,
            int,
            list[tuple[int, int, int]],
            tuple[
                list[tuple[int, int, int, int]],
                list[tuple[int, int]],
                list[tuple[int, int, int]],
            ],
        ]
    ]:
        """The fields of `brokers.usage.PartitionSegments` in order. Raises `StorageError`."""

def version() -> str:
    """The broker's version."""

def default_settings() -> str:
    """Every setting with its default, as TOML."""

def resolve_settings(settings: str, overrides: Sequence[str]) -> str:
    """Settings (TOML) with `section.setting=value` overrides and defaults filled in.

    Raises `ConfigError`, which names line and key.
    """

def default_gateway_settings() -> str:
    """Every setting of a gateway with its default, as TOML."""

def resolve_gateway_settings(settings: str, overrides: Sequence[str]) -> str:
    """As `resolve_settings`, for a gateway."""

def start_logs(settings: str) -> None:
    """Starts this process's log on standard error. Only the first call has an effect."""

def is_remote(folder: str) -> bool:
    """Whether this machine's cache may not know what is in a folder's files. Raises `OSError`."""

def inspect(
    settings: str, *, verify: bool = False, lane: int | None = None, topic: str | None = None
) -> str:
    """A report of a cluster's storage, as JSON. Raises `StorageError`."""
