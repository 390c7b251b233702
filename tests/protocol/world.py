"""What is in a cluster before an answer is asked for, made through Kafka's protocol itself."""

from __future__ import annotations

import itertools
import struct
import threading
import time
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from tests.protocol.codec import Body, Codec
from tests.protocol.connection import LIMIT_S, Connection
from tests.protocol.records import CODECS, Record, StoredBatch, read_stored, write_batch

START_MS = 1_700_000_000_000
RECORDS = 3
# Group members do not send heartbeats here, and stay for all of the tests.
SESSION_TIMEOUT_MS = 1_800_000
REBALANCE_TIMEOUT_MS = 60_000
REQUEST_TIMEOUT_MS = 30_000
TOPIC, GROUP, USER, QUOTA_USER = "orders", "readers", "carol", "dave"
# A topic, and a group, that nobody makes.
ABSENT, ABSENT_ID = "absent", UUID(int=0xAB5E)
COMMITTED, COMMIT_METADATA = 2, "§ two"
QUOTA_BYTES = 1_048_576.0
# What a consumer says to its group, and is said to it, of one topic (`ConsumerProtocol*.json`).
_TOPICS = struct.pack(">hih", 0, 1, len(TOPIC)) + TOPIC.encode()
SUBSCRIPTION = _TOPICS + struct.pack(">i", -1)
ASSIGNMENT = _TOPICS + struct.pack(">iii", 2, 0, 1) + struct.pack(">i", -1)
RESOURCE_TOPIC, LITERAL, READ, ALLOW = 2, 3, 3, 3
SCRAM_SHA_256, ITERATIONS = 1, 4096
UNKNOWN_TOPIC_OR_PARTITION, COORDINATOR_LOADS, NOT_COORDINATOR, NO_COORDINATOR = 3, 14, 16, 15
TRANSIENT = {COORDINATOR_LOADS, NO_COORDINATOR, NOT_COORDINATOR}


@dataclass(frozen=True)
class Account:
    """A user with a password."""

    user: str
    password: str


@dataclass(frozen=True)
class Place:
    """Where requests go, and as whom: `root` may do everything, `nobody` nothing.

    `is_immediate` says whether whoever asks next sees each change, as it is with one broker of
    ours; Apache Kafka's brokers hear of changes a moment later than they are answered.
    """

    address: str
    codec: Codec
    root: Account
    nobody: Account
    is_immediate: bool = True


class World:
    """A cluster with content. `prepare` makes it; each test adds topics and groups of its own.

    Partition n of the topic has a batch under the n-th codec; one more partition is empty. The
    group has a committed offset and a member. A user has a SCRAM password, another a quota and an
    ACL.
    """

    def __init__(self, place: Place) -> None:
        self.place = place
        self._connections: dict[Account, Connection] = {}
        self._numbers = itertools.count()
        self._run = uuid.uuid4().hex[:8]
        answer = self.connection(place.root).ask("ApiVersions", 4, SOFTWARE)
        self.versions = {
            place.codec.schemas.apis[entry["ApiKey"]].name: entry["MaxVersion"]
            for entry in answer["ApiKeys"]
            if entry["ApiKey"] in place.codec.schemas.apis
        }
        self.codecs = CODECS
        self.member = ""
        self.generation = -1

    def connection(self, account: Account) -> Connection:
        """A connection that somebody is logged in on; the same one as long as it is sound."""
        connection = self._connections.get(account)
        if connection is None or connection.has_failed:
            if connection is not None:
                connection.close()
            connection = Connection(self.place.address, self.place.codec)
            connection.log_in(account.user, account.password)
            self._connections[account] = connection
        return connection

    def close(self) -> None:
        """Closes all connections."""
        for connection in self._connections.values():
            connection.close()
        self._connections.clear()

    def name(self, kind: str) -> str:
        """A name that nothing else has."""
        return f"{kind}-{self._run}-{next(self._numbers)}"

    def ask(self, name: str, body: Body, version: int | None = None) -> dict[str, Any]:
        """What the broker answers to the user who may do everything."""
        api = self.place.codec.schemas.named(name)
        newest = min(self.versions[name], api.request.versions.newest)
        connection = self.connection(self.place.root)
        return connection.ask(name, newest if version is None else version, body)

    def create_topic(self, partitions: int = 1, **configs: str) -> str:
        """Creates a topic; its name. In configs' names `_` stands for a point."""
        name = self.name("topic")
        self.make_topic(name, partitions, configs)
        return name

    def make_topic(self, name: str, partitions: int, configs: Mapping[str, str]) -> None:
        """Creates a topic and waits until its partitions have leaders."""
        entries = [
            {"Name": key.replace("_", "."), "Value": value} for key, value in configs.items()
        ]
        topic = {"Name": name, "NumPartitions": partitions, "ReplicationFactor": 1}
        body = {"Topics": [{**topic, "Configs": entries}], "timeoutMs": REQUEST_TIMEOUT_MS}
        answer = self.ask("CreateTopics", body)
        assert answer["Topics"][0]["ErrorCode"] == 0, answer
        self.wait_led(name, partitions)

    def wait_led(self, name: str, partitions: int) -> None:
        """Waits until each partition of a topic has a leader that answers."""
        entries = [{"PartitionIndex": index, "Timestamp": -1} for index in range(partitions)]
        body = {"ReplicaId": -1, "Topics": [{"Name": name, "Partitions": entries}]}
        is_led = lambda: set(_codes(self.ask("ListOffsets", body))) == {0}  # noqa: E731
        self.until(is_led, f"{name} has leaders")

    def expect(self, condition: Callable[[], object], what: str) -> None:
        """Asserts that a change is seen: at once, or where it may be later, at last."""
        if self.place.is_immediate:
            assert condition(), what
        else:
            self.until(condition, what)

    def until(self, condition: Callable[[], object], what: str) -> None:
        """Waits until something holds."""
        clock = threading.Event()
        deadline = time.monotonic() + LIMIT_S
        while not condition():
            assert time.monotonic() < deadline, f"never: {what}"
            clock.wait(0.02)

    def topic_id(self, name: str) -> UUID:
        """The id of a topic; of the one that nobody makes, an id that no topic has."""
        if name == ABSENT:
            return ABSENT_ID
        answer = self.ask("Metadata", {"Topics": [{"Name": name}]})
        topic_id = answer["Topics"][0]["TopicId"]
        assert isinstance(topic_id, UUID)
        return topic_id

    def produce(self, topic: str, partition: int, batch: bytes) -> int:
        """Appends a batch; the offset of its first record."""
        body = {
            "Acks": -1,
            "TimeoutMs": REQUEST_TIMEOUT_MS,
            "TopicData": [
                {"Name": topic, "PartitionData": [{"Index": partition, "Records": batch}]}
            ],
        }
        answer = self.ask("Produce", body, 9)
        (result,) = answer["Responses"][0]["PartitionResponses"]
        assert result["ErrorCode"] == 0, answer
        return int(result["BaseOffset"])

    def stored(self, topic: str, partition: int, offset: int) -> list[StoredBatch]:
        """The batches of a partition from an offset on."""
        entry = {"Partition": partition, "FetchOffset": offset, "PartitionMaxBytes": 1 << 20}
        body = {"MaxWaitMs": 0, "MinBytes": 1, "Topics": [{"Topic": topic, "Partitions": [entry]}]}
        (result,) = self.ask("Fetch", body, 11)["Responses"][0]["Partitions"]
        assert result["ErrorCode"] == 0, result
        return read_stored(result["Records"], f"{topic}-{partition}")

    def commit(self, group: str, topic: str, partition: int, offset: int) -> None:
        """Commits an offset of a group without members."""
        entry = {
            "PartitionIndex": partition,
            "CommittedOffset": offset,
            "CommittedMetadata": COMMIT_METADATA,
        }
        body = {"GroupId": group, "Topics": [{"Name": topic, "Partitions": [entry]}]}
        self.settle("OffsetCommit", body, 8)

    def settle(self, name: str, body: Body, version: int) -> dict[str, Any]:
        """Asks until a coordinator that is not ready yet answers; that answer, without errors."""
        answers: list[dict[str, Any]] = []

        def is_ready() -> bool:
            answers.append(self.ask(name, body, version))
            return not TRANSIENT & set(_codes(answers[-1]))

        self.until(is_ready, f"a coordinator answers {name}")
        assert set(_codes(answers[-1])) == {0}, answers[-1]
        return answers[-1]

    def join(self, group: str) -> tuple[str, int]:
        """Joins a group as its only member and takes an assignment; member id and generation."""
        body = {
            "GroupId": group,
            "SessionTimeoutMs": SESSION_TIMEOUT_MS,
            "RebalanceTimeoutMs": REBALANCE_TIMEOUT_MS,
            "ProtocolType": "consumer",
            "Protocols": [{"Name": "range", "Metadata": SUBSCRIPTION}],
        }
        joined = self.settle("JoinGroup", body, 3)
        member, generation = str(joined["MemberId"]), int(joined["GenerationId"])
        self.settle(
            "SyncGroup",
            {
                "GroupId": group,
                "GenerationId": generation,
                "MemberId": member,
                "Assignments": [{"MemberId": member, "Assignment": ASSIGNMENT}],
            },
            2,
        )
        return member, generation

    def prepare(self) -> None:
        """Makes what the class describes."""
        self.make_topic(TOPIC, len(CODECS) + 1, {"retention_ms": "-1"})
        for partition, codec in enumerate(CODECS):
            assert self.produce(TOPIC, partition, write_batch(records_of(codec), codec)) == 0
        # As clients do it first: it creates the coordinator's topic.
        self.settle("FindCoordinator", {"CoordinatorKeys": [GROUP]}, 4)
        self.commit(GROUP, TOPIC, 0, COMMITTED)
        self.member, self.generation = self.join(GROUP)
        self.settle("InitProducerId", {"TransactionalId": None, "TransactionTimeoutMs": -1}, 4)
        self._prepare_access()

    def _prepare_access(self) -> None:
        upsertion = {
            "Name": USER,
            "Mechanism": SCRAM_SHA_256,
            "Iterations": ITERATIONS,
            "Salt": b"0123456789abcdef",
            "SaltedPassword": b"s" * 32,
        }
        answer = self.ask("AlterUserScramCredentials", {"Upsertions": [upsertion]})
        assert answer["Results"][0]["ErrorCode"] == 0, answer
        entry = {
            "Entity": [{"EntityType": "user", "EntityName": QUOTA_USER}],
            "Ops": [{"Key": "producer_byte_rate", "Value": QUOTA_BYTES}],
        }
        answer = self.ask("AlterClientQuotas", {"Entries": [entry]})
        assert answer["Entries"][0]["ErrorCode"] == 0, answer
        answer = self.ask("CreateAcls", {"Creations": [acl(TOPIC)]})
        assert answer["Results"][0]["ErrorCode"] == 0, answer


SOFTWARE = {"ClientSoftwareName": "protocol-test", "ClientSoftwareVersion": "1.0"}


def acl(topic: str) -> dict[str, Any]:
    """An ACL by which somebody may read a topic."""
    return {
        "ResourceType": RESOURCE_TOPIC,
        "ResourceName": topic,
        "ResourcePatternType": LITERAL,
        "Principal": f"User:{QUOTA_USER}",
        "Host": "*",
        "Operation": READ,
        "PermissionType": ALLOW,
    }


def records_of(text: str) -> list[Record]:
    """Records with and without keys, values and headers; a header repeats."""
    headers = (("a", b"1"), ("a", b"2"), ("é", None), ("", b""))
    last = START_MS + RECORDS
    return [
        Record(b"key", text.encode(), START_MS, headers),
        Record(None, b"", last),
        Record(b"", None, START_MS + 1),
    ]


def _codes(value: object) -> list[int]:
    """All error codes anywhere in an answer."""
    if isinstance(value, dict):
        own = [code for name, code in value.items() if name.endswith("ErrorCode")]
        return own + [code for item in value.values() for code in _codes(item)]
    if isinstance(value, list):
        return [code for item in value for code in _codes(item)]
    return []
