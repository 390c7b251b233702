"""The independent scan finds what was written, and notices every kind of damage."""

import shutil

import pytest

from brokers import Broker
from tests.brokers.batches import DamageError
from tests.brokers.logscan import LogScan
from tests.brokers.test_embedded import produce
from tests.brokers.test_inspect import flip

LANE = {"file_bytes_first": 65536, "file_bytes_max": 65536, "roll_after_ms": 60_000}


@pytest.fixture(scope="module")
def killed(tmp_path_factory):
    """Two lanes: one sealed and split, one whose broker was killed with records unsplit."""
    broker = Broker(tmp_path_factory.mktemp("killed"), lane=LANE)
    broker.start()
    produce(broker.bootstrap, "orders", range(100))
    broker.stop()
    broker.restart()
    for value in range(100, 105):
        produce(broker.bootstrap, "orders", [value])
    broker.crash()
    return broker.folder


@pytest.fixture
def folder(killed, tmp_path):
    """A copy to damage."""
    return shutil.copytree(killed, tmp_path / "copy")


def scan(folder):
    return LogScan(folder / "dfs", folder / "bucket", folder / "metadata.sqlite")


def values(folder):
    return [int(record.value) for _, record in scan(folder).records("orders")]


def test_records_are_found_in_segments_and_in_lanes(folder):
    assert values(folder) == list(range(105))
    lanes = scan(folder).lanes
    assert [len(lane.batches) for lane in lanes.values()] == [0, 5]
    assert sum(entry.count for entry in lanes[1].leftovers[0].entries) == 100
    assert lanes[2].owner == 2


@pytest.mark.parametrize(
    ("pattern", "at"),
    [
        ("bucket/*/objects/*1/*0", 100),
        ("bucket/*/objects/*1/*0", -10),
        ("bucket/*/manifests/*/0/*", 30),
        ("dfs/*/lanes/*1/*.idx", 30),
        ("dfs/*/lanes/*2/*0.wal", 2 * 4096 + 80),
    ],
)
def test_flipped_bit_is_noticed(folder, pattern, at):
    path = sorted(folder.glob(pattern))[-1]
    flip(path, at)
    with pytest.raises(DamageError):
        values(folder)


def test_missing_block_is_noticed(folder):
    lane = next(folder.glob("dfs/*/lanes/*2/*0.wal"))
    raw = bytearray(lane.read_bytes())
    raw[8192:12288] = bytes(4096)
    lane.write_bytes(raw)
    with pytest.raises(DamageError, match="block 3 is missing"):
        values(folder)


def test_missing_lane_file_is_noticed(folder):
    next(folder.glob("dfs/*/lanes/*2/*0.wal")).unlink()
    with pytest.raises(DamageError, match="lane 2 holds nothing"):
        values(folder)


def test_missing_object_is_noticed(folder):
    next(folder.glob("bucket/*/objects/*1/*0")).unlink()
    with pytest.raises(FileNotFoundError):
        values(folder)
