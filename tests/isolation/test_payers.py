"""Who pays: a client that names somebody else in its requests' headers pays itself.

The service's own user names the key or member that asks by REST in a tagged field of the request's
header (`brokers/core/crates/wire/src/protocol/header.rs`). Here a tenant's client sends that field,
through a real gateway to a real broker, and a real metering agent reads what was counted.
"""

from __future__ import annotations

import pytest

from brokers.secrets import SUPER_USER
from console.base.common.clock import now
from metering.agent.source import CellSource
from tests.gateway.cells import PASSWORD, USER, Cell, GatewayServer, KeeperStandIn, until
from tests.metering.console.meter import Meter
from tests.protocol.codec import Codec, write_uvarint
from tests.protocol.connection import CLIENT_ID, ClosedError, Connection
from tests.protocol.records import Record, write_batch
from tests.protocol.schemas import error_names, load_schemas

PAYER_TAG = 1 << 20
# The fixed fields of a header, the length of the client id, and the client id.
HEADER_BYTES = 8 + 2 + len(CLIENT_ID)
NEIGHBOUR = "bob"
TIMESTAMP_MS = 1_700_000_000_000


class Liar(Connection):
    """A client whose requests name as the one who pays whatever `payer` is."""

    payer: bytes | None = None

    def send_frame(self, frame: bytes) -> None:
        """Puts the field where the header's tagged fields are."""
        if self.payer is not None:
            head, fields, body = (
                frame[:HEADER_BYTES],
                frame[HEADER_BYTES],
                frame[HEADER_BYTES + 1 :],
            )
            assert fields == 0
            field = write_uvarint(PAYER_TAG) + write_uvarint(len(self.payer)) + self.payer
            frame = head + b"\x01" + field + body
        super().send_frame(frame)


@pytest.fixture
def served(tmp_path):
    """A cell whose cluster has a user and a neighbour, its gateway, and a meter."""
    cell = Cell(tmp_path / "cell")
    spec = cell.add_cluster("cl_paying")
    cell.add_user(spec.id, NEIGHBOUR, PASSWORD)
    source = CellSource(
        metadata=cell.metadata, dfs=cell.folder / "dfs", bucket=str(cell.folder / "bucket")
    )
    meter = Meter(source, tmp_path / "progress", str(tmp_path / "usage"), cell="local")
    security = {"super_users": [f"User:{SUPER_USER}"]}
    with KeeperStandIn(cell, spec, security=security), GatewayServer(cell):
        yield spec, meter


def liar(spec):
    client = Liar(f"127.0.0.1:{spec.ports[0]}", Codec(load_schemas(), error_names()))
    client.log_in(USER, PASSWORD)
    return client


def produce(client, batch):
    partition = {"Index": 0, "Records": batch}
    body = {
        "Acks": -1,
        "TimeoutMs": 30_000,
        "TopicData": [{"Name": "t", "PartitionData": [partition]}],
    }
    [topic] = client.ask("Produce", 9, body)["Responses"]
    [answer] = topic["PartitionResponses"]
    assert answer["ErrorCode"] == 0, answer


def fetched_bytes(client):
    partition = {"Partition": 0, "PartitionMaxBytes": 1 << 20}
    body = {
        "MaxWaitMs": 1000,
        "MinBytes": 1,
        "MaxBytes": 1 << 20,
        "SessionEpoch": -1,
        "Topics": [{"Topic": "t", "Partitions": [partition]}],
    }
    [topic] = client.ask("Fetch", 12, body)["Responses"]
    [answer] = topic["Partitions"]
    assert answer["ErrorCode"] == 0, answer
    return len(answer["Records"])


def metered(meter):
    """Bytes by (meter, principal, whether they are billed), as far as they are in usage files."""
    meter.run_pass(now())
    sums: dict[tuple[str, str, bool], int] = {}
    for row in meter.rows():
        if row["principal"] is not None:
            key = (row["meter"], row["principal"], row["billed"])
            sums[key] = sums.get(key, 0) + row["quantity"]
    return sums


def test_a_client_that_names_another_payer_pays_itself(served):
    spec, meter = served
    lies = [
        f"User:{NEIGHBOUR}",
        f"User:{SUPER_USER}",
        "ApiKey:key_3n7hq2xw5m4kzt6yb2av",
        "Member:usr_3n7hq2xw5m4kzt6yb2av",
        "Others:*",
        "",
        "no principal at all \0 \u202e",
        "x" * 100_000,
    ]
    batch = write_batch([Record(b"k", b"value", TIMESTAMP_MS)])
    read = 0
    with liar(spec) as client:
        topic = {"Name": "t", "NumPartitions": 1, "ReplicationFactor": 1}
        made = client.ask("CreateTopics", 7, {"Topics": [topic]})
        assert made["Topics"][0]["ErrorCode"] == 0, made
        for lie in lies:
            client.payer = lie.encode()
            produce(client, batch)
            read += fetched_bytes(client)
        # Bytes that are no text either.
        client.payer = b"\xff\xfe"
        produce(client, batch)
    own = f"User:{USER}"
    expected = {
        ("ingress_bytes", own, True): (len(lies) + 1) * len(batch),
        ("egress_bytes", own, True): read,
    }
    assert read == len(batch) * sum(range(1, len(lies) + 1))
    until(lambda: sum(metered(meter).values()) >= sum(expected.values()), "all is in usage files")
    assert metered(meter) == expected


def test_a_field_that_ends_beyond_the_header_ends_one_connection(served):
    spec, _ = served
    with liar(spec) as client:
        client.payer = None
        api = client.codec.schemas.named("Metadata")
        frame = client.codec.request(api, 12, {}, correlation_id=7, client_id=CLIENT_ID)
        announced = b"\x01" + write_uvarint(PAYER_TAG) + write_uvarint(1 << 31)
        client.send_frame(frame[:HEADER_BYTES] + announced + b"User:bob")
        with pytest.raises(ClosedError):
            client.receive_frame()
    with liar(spec) as client:
        assert client.ask("Metadata", 12, {})["Brokers"]
