"""The fake and the engine's reader are held to the same cases."""

import pytest
from confluent_kafka import Producer

from brokers.metadata import CellStore
from brokers.usage import UsageReader
from tests.metering.agent.cases import ReaderConformance
from tests.metering.agent.fake import FakeCell
from tests.metering.agent.processes import CLUSTER, make_broker, wait_until

TOPIC = "orders"


class FakeStorage:
    """`FakeCell` with one cluster."""

    cluster_id = CLUSTER

    def __init__(self):
        self.reader = self.cell = FakeCell(1_800_000_000_000)
        self.cell.add_cluster(CLUSTER)
        self.cell.start(CLUSTER)
        self.cell.create_topic(CLUSTER, "0" * 32)

    def produce(self, count):
        for number in range(count):
            self.cell.now_ms += 1
            self.cell.produce(CLUSTER, ("0" * 32, 0, "User:alice", number + 1))

    def roll(self):
        self.cell.roll(CLUSTER)
        self.cell.split(CLUSTER)

    def close(self):
        self.cell.close(CLUSTER)

    def crash(self):
        self.cell.kill(CLUSTER, tail_survives=True)
        self.cell.start(CLUSTER)

    def sealed_end(self, incarnation):
        return self.cell.clusters[CLUSTER].lanes[incarnation].sealed_end


class RealStorage:
    """An embedded broker's storage."""

    cluster_id = CLUSTER

    def __init__(self, broker):
        self.broker = broker
        self.reader = UsageReader(dfs=broker.folder / "dfs", bucket=broker.folder / "bucket")
        self.metadata = CellStore(broker.folder / "metadata.sqlite").cluster(CLUSTER)
        self.metadata.create_topic(TOPIC, partitions=1)
        assert self.metadata.wait_led(TOPIC, 60)

    def produce(self, count):
        producer = Producer({"bootstrap.servers": self.broker.bootstrap, "log_level": 0})
        for number in range(count):
            producer.produce(TOPIC, f"record {number}".encode(), partition=0)
        assert producer.flush(60) == 0

    def roll(self):
        def is_split():
            reading = self.reader.read_lane(CLUSTER, self.broker.incarnation)
            return reading.unsplit_since_ms is None

        wait_until(is_split, "all is split")

    def close(self):
        self.broker.stop()

    def crash(self):
        self.broker.crash()
        self.broker.restart()

    def sealed_end(self, incarnation):
        (lane,) = (record for record in self.metadata.lanes() if record.incarnation == incarnation)
        return lane.sealed_end


class TestFake(ReaderConformance):
    @pytest.fixture
    def storage(self):
        return FakeStorage()


class TestEngine(ReaderConformance):
    @pytest.fixture
    def storage(self, tmp_path):
        with make_broker(tmp_path / "cell") as broker:
            yield RealStorage(broker)
