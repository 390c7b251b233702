"""Keeper and gateway together: a Kafka client notices no sleep, wake or kill."""

import os
import signal
from dataclasses import replace

import confluent_kafka
import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from provisioning.cell.keeper.settings import CellSettings, KeeperSettings, LoopSettings
from tests.gateway.cells import PASSWORD, USER, Cell, GatewayServer, until
from tests.provisioning.keeper.processes import LIMIT_S, KeeperServer, alive
from tests.provisioning.survivors import kill_survivors

CLUSTER = "cl_seen"


@pytest.fixture
def settings(tmp_path):
    for name in ("dfs", "bucket"):
        (tmp_path / name).mkdir()
    cell = CellSettings(
        tmp_path / "metadata.sqlite", tmp_path / "dfs", tmp_path / "bucket", tmp_path / "secret"
    )
    loop = LoopSettings(tmp_path / "keeper", stop_brokers_on_exit=True, scrape_interval_ms=100)
    broker = {
        "topics": {"offsets_partitions": 4},
        "groups": {"initial_rebalance_delay_ms": 0},
        "threads": {"runtime": 1},
    }
    yield KeeperSettings(cell, replace(loop, awake_min_ms=500), broker=broker)
    kill_survivors(tmp_path / "keeper/run")


class Client:
    """A producer and a consumer of one cluster. Any error of theirs fails the test."""

    def __init__(self, spec):
        self.errors = []
        self.login = {
            "bootstrap.servers": f"127.0.0.1:{spec.ports[0]}",
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "SCRAM-SHA-512",
            "sasl.username": USER,
            "sasl.password": PASSWORD,
            "reconnect.backoff.ms": 10,
            "reconnect.backoff.max.ms": 100,
        }

    def create_topic(self):
        admin = AdminClient(self.login)
        admin.create_topics([NewTopic("orders", 1)])["orders"].result(LIMIT_S)

    def producer(self):
        return confluent_kafka.Producer({**self.login, "enable.idempotence": True})

    def produce(self, producer, values):
        for value in values:
            producer.produce("orders", value, on_delivery=self._delivered)
        assert producer.flush(LIMIT_S) == 0
        assert self.errors == []

    def consume(self, count):
        group = {"group.id": "readers", "auto.offset.reset": "earliest"}
        consumer = confluent_kafka.Consumer({**self.login, **group})
        consumer.subscribe(["orders"])
        values: list[str] = []
        while len(values) < count:
            message = consumer.poll(LIMIT_S)
            assert message is not None, values
            if message.error() is None:
                values.append(message.value().decode())
        consumer.close()
        return values

    def _delivered(self, error, _message):
        if error is not None:
            self.errors.append(error)


def phase(cell):
    status = cell.store.status(CLUSTER)
    return None if status is None else status.phase


def test_clients_see_neither_sleep_nor_kills(settings, tmp_path):
    cell = Cell(tmp_path)
    spec = cell.add_cluster(CLUSTER)
    client = Client(spec)
    with KeeperServer(settings) as keeper, GatewayServer(cell):
        client.create_topic()
        producer = client.producer()
        client.produce(producer, ["awake"])
        kill_broker(cell)
        client.produce(producer, ["after a killed broker"])
        # Broker and keeper are killed together; the next keeper starts the broker again.
        keeper.kill()
        kill_broker(cell)
        keeper.start()
        client.produce(producer, ["after a killed keeper"])
        del producer
        cell.store.put_spec(replace(spec, generation=2, idle_timeout_ms=1))
        until(lambda: phase(cell) == "asleep", "asleep")
        client.produce(client.producer(), ["after sleep"])
        until(lambda: phase(cell) == "asleep", "asleep again")
        assert client.consume(4) == [
            "awake",
            "after a killed broker",
            "after a killed keeper",
            "after sleep",
        ]


def kill_broker(cell):
    (broker,) = cell.store.status(CLUSTER).brokers
    assert alive(broker.pid)
    os.kill(broker.pid, signal.SIGKILL)
