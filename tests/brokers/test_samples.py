"""What earlier releases stored is still read: by the scan, by the inspector and by a broker."""

import json
import shutil
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Message, TopicPartition

from brokers import Broker, _core
from tests.brokers.damaged_sample_writer import PARTITIONS, T0_MS
from tests.brokers.damaged_sample_writer import TOPIC as DAMAGED_TOPIC
from tests.brokers.lanes import CHECKPOINT, DATA, INSTALL, USAGE, PartitionId
from tests.brokers.logscan import LogScan
from tests.brokers.raw_batches import damaged_batches
from tests.brokers.sample_writer import TOPIC, consume, expected

SAMPLES = sorted(path.parent for path in Path(__file__).parent.glob("samples/v*/dfs"))
DAMAGED = Path(__file__).parent / "samples/damaged"
# The scan does not read the headers of records.
WRONG_HEADERS = "2 billion headers"
CORE_SAMPLES = Path(__file__).parents[2] / "brokers/core/crates/storage/tests/samples"


@pytest.fixture(params=SAMPLES, ids=lambda sample: sample.name)
def sample(request, tmp_path):
    """A copy: opening it changes it."""
    return shutil.copytree(request.param, tmp_path / "sample")


def test_scan_reads_every_sample(sample):
    scan = LogScan(sample / "dfs", sample / "bucket", sample / "metadata.sqlite")
    values = [record.value for _, record in scan.records(TOPIC)]
    assert values == expected(1) + expected(2)
    first, second = scan.lanes.values()
    assert first.seal is not None
    assert first.leftovers[0].entries
    assert {DATA, USAGE, INSTALL, CHECKPOINT} == {block.kind for block in second.blocks}
    assert [owner.owner for owner in (first, second)] == [2, 2]


def test_broker_starts_on_every_sample_and_goes_on(sample):
    with Broker(sample) as broker:
        report = json.loads(_core.inspect(broker.settings, verify=True))
        assert report["damage"] == []
        values = consume(broker.bootstrap, 2 * len(expected(1)), "another")
        assert values == expected(1) + expected(2)
        assert broker.incarnation == 3


@pytest.fixture
def damaged(tmp_path):
    """A copy of the log with damaged batches."""
    return shutil.copytree(DAMAGED, tmp_path / "damaged")


def expected_batches(partition):
    content = json.loads((DAMAGED / "expected.json").read_text())
    return content["partitions"][partition]["batches"]


@pytest.mark.parametrize("partition", range(PARTITIONS))
def test_scan_finds_every_damaged_batch_where_it_is_expected(damaged, partition):
    scan = LogScan(damaged / "dfs", damaged / "bucket", damaged / "metadata.sqlite")
    manifest = scan.manifest(PartitionId(scan.topics[DAMAGED_TOPIC].id, partition))
    assert manifest is not None
    batches = list(scan.batches(DAMAGED_TOPIC, partition))
    for batch, stated in zip(batches, expected_batches(partition), strict=True):
        assert batch.base_offset == stated["base_offset"]
        assert batch.next_offset == stated["next_offset"]
        assert batch.max_timestamp == stated["header_max_timestamp"]
        place = "segment" if batch.base_offset < manifest.covered_end else "lane"
        assert place == stated["stored_in"]
        if stated["damage"] is None:
            assert [record.value for record in batch.records()] == [
                value.encode() for value in stated["values"]
            ]
        elif stated["damage"] != WRONG_HEADERS:
            assert not is_sound(batch)


def is_sound(batch):
    """Whether all records of a batch can be read and have the offsets that its header states."""
    try:
        offsets = [record.offset for record in batch.records()]
    except Exception:
        return False  # each codec's library has errors of its own
    return offsets == list(range(batch.base_offset, batch.next_offset))


def test_the_sample_has_every_kind_of_damage_in_a_segment_and_in_a_lane():
    stored = {
        (batch["damage"], batch["stored_in"])
        for partition in range(PARTITIONS)
        for batch in expected_batches(partition)
    }
    kinds = [None, *damaged_batches(T0_MS)]
    assert stored == {(kind, place) for kind in kinds for place in ("segment", "lane")}


def test_broker_serves_what_is_sound_of_a_log_with_damaged_batches(damaged):
    with Broker(damaged) as broker:
        settings = {"bootstrap.servers": broker.bootstrap, "group.id": "sound", "log_level": 0}
        consumer = Consumer({**settings, "fetch.message.max.bytes": 1})
        for batch in expected_batches(1):
            if batch["damage"] is not None:
                continue
            consumer.assign([TopicPartition(DAMAGED_TOPIC, 1, batch["base_offset"])])
            messages: list[Message] = []
            while len(messages) < len(batch["values"]):
                messages += consumer.consume(len(batch["values"]) - len(messages), timeout=1)
            assert [message.value().decode() for message in messages] == batch["values"]
            times = [message.timestamp()[1] for message in messages]
            assert times == batch["timestamps"]
        consumer.close()


@pytest.mark.parametrize("version", ["v1", "v2"])
def test_scan_reads_the_samples_of_the_engine(version):
    """Lanes that the engine's own tests wrote, with a clean end; there is no metadata store."""
    scan = LogScan(CORE_SAMPLES / version, CORE_SAMPLES / version, None, "c")
    kinds = {block.kind for lane in scan.lanes.values() for block in lane.blocks}
    assert kinds >= {DATA, USAGE, INSTALL, CHECKPOINT}
    assert scan.lanes[2].seal is not None
    for partition in scan.installed:
        manifest = scan.manifest(partition)
        assert manifest is not None
        assert sum(batch.count for batch in scan.segment_batches(manifest)) > 0
