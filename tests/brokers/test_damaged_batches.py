"""A log with batches that an earlier release acknowledged without reading them."""

import json
import shutil
from pathlib import Path

import pytest
from confluent_kafka import Consumer, TopicPartition

from brokers import Broker, _core
from tests.brokers.damaged_sample_writer import PARTITIONS, TOPIC

SAMPLE = Path(__file__).parent / "samples/damaged"
EXPECTED = json.loads((SAMPLE / "expected.json").read_text())["partitions"]


@pytest.fixture
def folder(tmp_path):
    """A copy of the log."""
    return shutil.copytree(SAMPLE, tmp_path / "damaged")


def test_inspect_names_each_by_topic_partition_and_offsets(folder):
    with Broker(folder) as broker:
        settings = broker.settings
    report = json.loads(_core.inspect(settings, verify=True))
    assert report["damage"] == []
    named = {
        (batch["topic"], batch["partition"], batch["first_offset"], batch["next_offset"])
        for batch in report["damaged_batches"]
    }
    assert named == {
        (TOPIC, partition["partition"], batch["base_offset"], batch["next_offset"])
        for partition in EXPECTED
        for batch in partition["batches"]
        if batch["damage"] is not None
    }
    assert all(batch["what"] for batch in report["damaged_batches"])


def records_of(partition):
    """Timestamp and offset of each record, and whether it can be found by time.

    A header is believed that is merely too low. One that lies before its base is not; but the index
    of a segment that an earlier release wrote may be too low for all of its batches.
    """
    batches = [batch for batch in EXPECTED[partition]["batches"] if batch["timestamps"]]
    stored = {batch["stored_in"] for batch in batches}
    indexed = {
        place: max(b["header_max_timestamp"] for b in batches if b["stored_in"] == place)
        for place in stored
    }
    for batch in batches:
        first, named = batch["timestamps"][0], batch["header_max_timestamp"]
        for offset, timestamp in enumerate(batch["timestamps"], batch["base_offset"]):
            is_reached = batch["stored_in"] == "lane" or timestamp <= indexed["segment"]
            yield timestamp, offset, is_reached and (named < first or timestamp <= named)


@pytest.mark.parametrize("partition", range(PARTITIONS))
def test_offsets_by_time_are_those_of_the_records(folder, partition):
    """Also of batches whose header names no largest timestamp, as Sarama sent them."""
    records = list(records_of(partition))
    with Broker(folder) as broker:
        consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": "by-time"})
        for timestamp in [at for at, _, is_reachable in records if is_reachable]:
            first = min(offset for at, offset, _ in records if at >= timestamp)
            asked = [TopicPartition(TOPIC, partition, timestamp)]
            (result,) = consumer.offsets_for_times(asked, timeout=10)
            assert result.offset == first, timestamp
        consumer.close()


def test_most_records_can_be_found():
    reachable = [records_of(partition) for partition in range(PARTITIONS)]
    flags = [is_reachable for records in reachable for _, _, is_reachable in records]
    assert sum(flags) > len(flags) * 0.9
