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
