"""Brokers as processes over mounts of one GlusterFS, and what clients and storage then have."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path
from typing import Any

from brokers.metadata import CellStore
from tests.brokers.logscan import LogScan
from tests.brokers.test_several_brokers import CLUSTER, PARTITIONS, TOPIC, Load, topics_of
from tests.clients.servers import BrokerServer
from tests.protocol.codec import Codec
from tests.protocol.connection import ClosedError, Connection
from tests.protocol.records import Record, write_batch
from tests.protocol.schemas import error_names, load_schemas

# Files are ended and split often, so that a takeover finds all of that.
LANE = {"file_bytes_first": 65536, "file_bytes_max": 1 << 20, "roll_after_ms": 500}
PRODUCE_VERSION = 9
LATE = b"sent to a broker that was fenced"


class MountedCluster:
    """A cluster whose metadata and objects are on this machine's disk, and its lanes in mounts."""

    def __init__(self, folder: Path, mounts: list[Path], slots: int) -> None:
        self.folder = folder
        # One folder of the volume, as each mount shows it.
        self.shared = [mount / folder.name for mount in mounts]
        self.metadata = CellStore(folder / "metadata.sqlite").cluster(CLUSTER)
        self.metadata.create(scale=slots)

    def broker(self, slot: int, mount: int) -> BrokerServer:
        """A broker that is not started yet: of this slot, over this mount."""
        storage = {
            "dfs": self.shared[mount],
            "bucket": self.folder / "bucket",
            "metadata": self.folder / "metadata.sqlite",
        }
        return BrokerServer(
            self.folder / f"broker{slot}-mount{mount}",
            storage=storage,
            broker={"node_id": slot},
            listener={"brokers": "127.0.0.1:0", "link_secret": "5e" * 32},
            lane=LANE,
        )

    def states(self) -> list[str]:
        """The states of all incarnations, the oldest first."""
        lanes = sorted(self.metadata.lanes(), key=lambda lane: lane.incarnation)
        return [lane.state for lane in lanes]

    def stored(self, mount: int) -> dict[int, list[int]]:
        """Partition → the numbers in it, as storage has them through a mount; no broker may run."""
        metadata, bucket = self.folder / "metadata.sqlite", self.folder / "bucket"
        numbers: dict[int, list[int]] = defaultdict(list)
        for partition, record in LogScan(self.shared[mount], bucket, metadata).records(TOPIC):
            numbers[partition].append(int(record.value or b""))
        return dict(numbers)

    def assert_stored(self, load: Load) -> None:
        """Through each mount, storage has what was acknowledged, once and in order; no more."""
        expected: dict[int, list[int]] = defaultdict(list)
        for number in sorted(load.acked):
            expected[number % PARTITIONS].append(number)
        for mount in range(len(self.shared)):
            assert self.stored(mount) == expected


def bootstrap_of(brokers: Iterable[BrokerServer]) -> str:
    """The addresses of all of them."""
    return ",".join(broker.bootstrap for broker in brokers)


def leaders(broker: BrokerServer) -> dict[int, int]:
    """Partition → the node that leads it, as the broker says."""
    partitions = topics_of(broker)[TOPIC].partitions
    return {index: partition.leader for index, partition in partitions.items()}


def longest_pause_s(load: Load) -> float:
    """Of all partitions the longest time between two acknowledgements."""
    moments: dict[int, list[float]] = defaultdict(list)
    for number, moment in zip(load.acked, load.moments, strict=True):
        moments[number % PARTITIONS].append(moment)
    return max(
        later - earlier for partition in moments.values() for earlier, later in pairwise(partition)
    )


class LateClient:
    """A client of one broker, which asks it to take a record while it is paused."""

    def __init__(self, broker: BrokerServer, partition: int) -> None:
        self._connection = Connection(broker.bootstrap, Codec(load_schemas(), error_names()))
        self._api = self._connection.codec.schemas.named("Produce")
        # Sure to be connected, and not only in the queue of the one that listens.
        self._connection.ask("ApiVersions", 3, {})
        self._partition = partition

    def send(self) -> None:
        """Sends the record and does not wait for an answer."""
        batch = write_batch([Record(None, LATE, int(time.time() * 1000))])
        partition: dict[str, Any] = {"Index": self._partition, "Records": batch}
        topic = {"Name": TOPIC, "PartitionData": [partition]}
        body = {"Acks": -1, "TimeoutMs": 30_000, "TopicData": [topic]}
        self._connection.send(self._api, PRODUCE_VERSION, body)

    def is_refused(self) -> bool:
        """Waits for the answer; returns whether it is an error, or the connection was ended."""
        try:
            answer = self._connection.answer(self._api, PRODUCE_VERSION)
        except ClosedError:
            return True
        finally:
            self._connection.close()
        [partition] = answer["Responses"][0]["PartitionResponses"]
        return bool(partition["ErrorCode"])
