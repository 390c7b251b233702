"""A log with batches that an earlier release acknowledged without reading them."""

import json
import shutil
import urllib.request
from pathlib import Path

import pytest
from confluent_kafka import Consumer, TopicPartition
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from brokers import Broker, _core
from tests.brokers.damaged_sample_writer import PARTITIONS, TOPIC
from tests.supervisor.run import wait_until

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


FIRST_DAMAGED = {
    partition["partition"]: min(
        batch["base_offset"] for batch in partition["batches"] if batch["damage"] is not None
    )
    for partition in EXPECTED
    if any(batch["damage"] is not None for batch in partition["batches"])
}


def metrics_of(broker):
    """The samples of the broker's metrics by name."""
    with urllib.request.urlopen(f"http://{broker.metrics_address}/metrics") as answer:
        families = text_string_to_metric_families(answer.read().decode())
        return {family.name: family.samples for family in families}


def first_damaged_in(metrics):
    """The first damaged batch of each partition."""
    samples = metrics.get("freshet_damaged_batch_first_offset", [])
    assert {sample.labels["topic"] for sample in samples} <= {TOPIC}
    return {int(sample.labels["partition"]): int(sample.value) for sample in samples}


def wait_for_check(broker):
    def has_ended():
        metrics = metrics_of(broker)
        (unread,) = metrics["freshet_unread_bytes"]
        return unread.value == 0 and first_damaged_in(metrics) == FIRST_DAMAGED

    wait_until(has_ended, "every record is read, and the first damaged batches are named")


def test_a_start_reads_what_earlier_releases_stored_and_remembers_what_is_damaged(folder):
    with Broker(folder, jobs={"rewrite_interval_ms": 50}) as broker:
        wait_for_check(broker)
    with Broker(folder, jobs={"rewrite_interval_ms": 3_600_000}) as broker:
        assert first_damaged_in(metrics_of(broker)) == FIRST_DAMAGED


@pytest.mark.parametrize("partition", range(PARTITIONS))
def test_after_the_check_every_record_is_found_by_its_time(folder, partition):
    records = [(timestamp, offset) for timestamp, offset, _ in records_of(partition)]
    with Broker(folder, jobs={"rewrite_interval_ms": 50}) as broker:
        wait_for_check(broker)
        with Consumer({"bootstrap.servers": broker.bootstrap, "group.id": "by-time"}) as consumer:
            for timestamp, _ in records:
                first = min(offset for at, offset in records if at >= timestamp)
                asked = [TopicPartition(TOPIC, partition, timestamp)]
                (result,) = consumer.offsets_for_times(asked, timeout=10)
                assert result.offset == first, timestamp
