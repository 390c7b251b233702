"""Traffic that is not billed: a client that asks for as much of it as it can get.

Offsets with long texts are written and read without a record being moved, so nobody pays for them.
They are metered for whoever asks, and bounded. Batches that are not stored are bounded as well.
Gateway, broker, clients and meter are real.
"""

from __future__ import annotations

import struct
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import pytest
from aiokafka.record.util import calc_crc32c
from confluent_kafka import Consumer

from brokers.metadata import Acl
from brokers.metadata_records import ClusterLimits
from brokers.secrets import SUPER_USER
from console.base.common.clock import now
from metering.agent.source import CellSource
from tests.brokers.raw_batches import sound_batch
from tests.gateway.cells import PASSWORD, USER, Cell, GatewayServer, KeeperStandIn, until
from tests.gateway.raw import metric
from tests.metering.console.meter import Meter
from tests.protocol.codec import Codec
from tests.protocol.connection import ClosedError, Connection
from tests.protocol.schemas import error_names, load_schemas

NEIGHBOUR = "bob"
PARTITIONS = 50
RATE = 128 << 10
# Seconds of the rate that a cluster saves, and how many connections a second of debt slows down to
# the rate (`brokers/core/crates/quota/src/unbilled.rs`).
SAVINGS_S, PRICE = 64, 4
CONNECTIONS = 8
ATTACK_S = 6.0
# Longer than the session of a member that sends no heartbeats.
NEIGHBOURS_S = 8.0
THROTTLED = 'freshet_throttle_milliseconds_total{kind="unbilled"}'
UNBILLED = "freshet_unbilled_bytes_total"
# Kafka's error codes.
UNKNOWN_TOPIC, OUT_OF_ORDER = 3, 45
# Bytes of metadata of an offset: the most that there may be.
TEXT = "x" * 4096
COMMIT = {
    "GroupId": "g",
    "GenerationIdOrMemberEpoch": -1,
    "RetentionTimeMs": -1,
    "Topics": [
        {
            "Name": "t",
            "Partitions": [
                {"PartitionIndex": index, "CommittedOffset": 1, "CommittedMetadata": TEXT}
                for index in range(PARTITIONS)
            ],
        }
    ],
}
FETCH = {"GroupId": "g", "Topics": [{"Name": "t", "PartitionIndexes": list(range(PARTITIONS))}]}
# What each of the two moves, in whichever direction.
BYTES = PARTITIONS * len(TEXT)


@pytest.fixture
def served(tmp_path):
    """A cell whose cluster has two users and little room for what is not billed, and a meter."""
    cell = Cell(tmp_path / "cell")
    spec = cell.add_cluster("cl_unbilled")
    cell.add_user(spec.id, NEIGHBOUR, PASSWORD)
    cluster = cell.store.cluster(spec.id)
    cluster.add_acls(
        Acl(resource_type=kind, resource_name="*", principal=f"User:{NEIGHBOUR}", operation="ALL")
        for kind in ("TOPIC", "GROUP")
    )
    cluster.set_limits(ClusterLimits(unbilled_bytes_per_second=RATE))
    source = CellSource(
        metadata=cell.metadata, dfs=cell.folder / "dfs", bucket=str(cell.folder / "bucket")
    )
    meter = Meter(source, tmp_path / "progress", str(tmp_path / "usage"), cell="local")
    security = {"super_users": [f"User:{SUPER_USER}"]}
    with KeeperStandIn(cell, spec, security=security) as keeper, GatewayServer(cell):
        yield spec, meter, keeper.broker


def logged_in(spec, user):
    client = Connection(f"127.0.0.1:{spec.ports[0]}", Codec(load_schemas(), error_names()))
    client.log_in(user, PASSWORD)
    return client


def create_topic(client):
    topic = {"Name": "t", "NumPartitions": PARTITIONS, "ReplicationFactor": 1}
    made = client.ask("CreateTopics", 7, {"Topics": [topic]})
    assert made["Topics"][0]["ErrorCode"] == 0, made

    def has_coordinator():
        answer = client.ask("FindCoordinator", 4, {"CoordinatorKeys": ["g"]})
        return answer["Coordinators"][0]["ErrorCode"] == 0

    until(has_coordinator, "the coordinator is there")


def until_refused(spec, ask: Callable[[Connection], None], until_s: float) -> int:
    """How often `ask` was answered. Where a connection is not read any more, another is opened."""
    count = 0
    while (left := until_s - time.monotonic()) > 0:
        try:
            with logged_in(spec, USER) as client:
                while (left := until_s - time.monotonic()) > 0:
                    client.socket.settimeout(min(left, 0.5))
                    ask(client)
                    count += 1
        except (TimeoutError, ClosedError):
            continue
    return count


def commit(client):
    [topic] = client.ask("OffsetCommit", 2, COMMIT)["Topics"]
    assert all(one["ErrorCode"] == 0 for one in topic["Partitions"]), topic


def fetch(client):
    [topic] = client.ask("OffsetFetch", 7, FETCH)["Topics"]
    assert len(topic["Partitions"]) == PARTITIONS


def metered(meter):
    """Bytes by (meter, principal, whether they are billed), as far as they are in usage files."""
    meter.run_pass(now())
    sums: dict[tuple[str, str, bool], int] = {}
    for row in meter.rows():
        if row["principal"]:
            key = (row["meter"], row["principal"], row["billed"])
            sums[key] = sums.get(key, 0) + row["quantity"]
    return sums


def bounded_bytes(spec, ask, size):
    """Has hostile connections ask as fast as they may, `size` bytes each time; returns their bytes.

    Asserts that these are within what is not billed of a cluster.
    """
    begun = time.monotonic()
    attack = [begun + ATTACK_S] * CONNECTIONS
    with ThreadPoolExecutor(CONNECTIONS) as pool:
        counts = list(pool.map(lambda until_s: until_refused(spec, ask, until_s), attack))
    seconds = time.monotonic() - begun
    # The savings, the rate, what passes until the price is right, and a request of each connection.
    allowed = RATE * (SAVINGS_S + seconds + CONNECTIONS / PRICE) + 2 * CONNECTIONS * size
    moved = size * sum(counts)
    assert RATE * SAVINGS_S / 2 < moved <= allowed, f"{moved} bytes in {seconds} s, of {allowed}"
    return moved


@pytest.mark.parametrize(
    ("ask", "of_meter"),
    [(commit, "ingress_bytes"), (fetch, "egress_bytes")],
    ids=["commit", "fetch"],
)
def test_what_is_not_billed_is_metered_for_whom_asks_and_bounded(served, ask, of_meter):
    spec, meter, broker = served
    with logged_in(spec, USER) as client:
        create_topic(client)
        commit(client)
    moved = bounded_bytes(spec, ask, BYTES)
    own = (of_meter, f"User:{USER}", False)
    until(lambda: metered(meter).get(own, 0) >= moved, "all is in usage files")
    sums = metered(meter)
    assert not any(billed for _, _, billed in sums), sums
    of_service = sum(size for (_, who, _), size in sums.items() if who == f"User:{SUPER_USER}")
    assert of_service == 0, sums
    assert metric(broker.metrics_address, THROTTLED) > 0


def numbered(sequence: int) -> bytes:
    """A batch of an idempotent producer of 50 KB, with this sequence number."""
    plain = sound_batch([b"x" * 50_000], base_timestamp=1_700_000_000_000)
    raw = bytearray(plain)
    struct.pack_into(">qhi", raw, 43, 7, 0, sequence)
    struct.pack_into(">I", raw, 17, calc_crc32c(bytes(raw[21:])))
    return bytes(raw)


def produce(client, sequence: int, topic: str = "t") -> tuple[int, int]:
    """Produces a batch. Returns the error code and for how many ms the answer asks to pause."""
    partition = {"Index": 0, "Records": numbered(sequence)}
    topics = [{"Name": topic, "PartitionData": [partition]}]
    answer = client.ask("Produce", 9, {"Acks": -1, "TimeoutMs": 30_000, "TopicData": topics})
    [one] = answer["Responses"][0]["PartitionResponses"]
    return one["ErrorCode"], answer["ThrottleTimeMs"]


@pytest.mark.parametrize(
    ("sequence", "topic", "error"),
    [(0, "t", 0), (40, "t", OUT_OF_ORDER), (0, "unknown", UNKNOWN_TOPIC)],
    ids=["duplicate", "hole", "unknown topic"],
)
def test_batches_that_are_not_stored_are_bounded(served, sequence, topic, error):
    spec, meter, broker = served
    with logged_in(spec, USER) as client:
        create_topic(client)
        # A producer that goes on, and sends each batch twice, is not paused.
        for number in range(5):
            assert produce(client, number) == produce(client, number) == (0, 0)
    size = len(numbered(0))

    def ask(client):
        assert produce(client, sequence, topic)[0] == error

    moved = bounded_bytes(spec, ask, size)
    assert metric(broker.metrics_address, UNBILLED) >= moved
    # They are in no bill.
    own = ("ingress_bytes", f"User:{USER}", True)
    until(lambda: metered(meter).get(own, 0) >= 5 * size, "what was stored is in usage files")
    assert metered(meter)[own] == 5 * size


def test_members_of_another_principal_notice_nothing(served):
    spec, _, _ = served
    with logged_in(spec, USER) as client:
        create_topic(client)
    settings = {
        "bootstrap.servers": f"127.0.0.1:{spec.ports[0]}",
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "SCRAM-SHA-256",
        "sasl.username": NEIGHBOUR,
        "sasl.password": PASSWORD,
        "group.id": "neighbours",
        "session.timeout.ms": 6000,
        "heartbeat.interval.ms": 1000,
        "enable.auto.commit": False,
    }
    revoked = []
    with closing(Consumer(settings)) as member, ThreadPoolExecutor(CONNECTIONS) as pool:
        member.subscribe(["t"], on_revoke=lambda *_: revoked.append(1))
        until(lambda: member.poll(0.1) is None and member.assignment(), "it is a member")
        until_s = time.monotonic() + NEIGHBOURS_S
        attacks = [pool.submit(until_refused, spec, commit, until_s) for _ in range(CONNECTIONS)]
        longest = 0.0
        while time.monotonic() < until_s:
            begun = time.monotonic()
            member.committed(member.assignment(), timeout=60)
            longest = max(longest, time.monotonic() - begun)
            member.poll(0.05)
        assert sum(attack.result() for attack in attacks) > 0
        assert not revoked
        # The machine is busy with the attack, but there is no pause.
        assert longest < 3, longest
