"""A broker on a file system that fails: it ends, the next one serves, nothing acked is lost."""

import contextlib
import subprocess
import threading

import pytest
from confluent_kafka import Producer

from tests.brokers.numbers import TOPIC, Numbers, make_topic, read_all
from tests.clients.servers import BrokerServer
from tests.faulty.faults import Faults
from tests.faulty.mount import FaultyFolder

STOOD_DOWN = 3
# Files that are full and split within moments.
LANE = {"file_bytes_first": 1 << 18, "file_bytes_max": 1 << 18, "roll_after_ms": 300}
# Enough for what is written faster than it is split.
TMPFS_BYTES = 256 << 20
# Records that are written while the file system is full.
FEW = 4


def end_a_broker(own, dfs, fault, said=""):
    """While `fault` lasts a broker over `dfs` ends and says why; the next ones lack nothing."""
    broker = BrokerServer(own, storage={"dfs": dfs}, lane=LANE)
    with broker:
        make_topic(broker.bootstrap, TOPIC)
        with Numbers(broker.bootstrap) as numbers:
            numbers.wait_for_more()
            with fault:
                assert broker.wait() == STOOD_DOWN, broker.log.read_text()
                assert said in broker.log.read_text()
            broker.start()
            numbers.wait_for_more()
        assert numbers.read == list(range(numbers.acked))
        assert broker.stop() == 0
    with broker:
        assert read_all(broker.bootstrap, numbers.acked) == numbers.read


@contextlib.contextmanager
def failing(disk, wrong):
    """Injects faults into a folder for as long as a block lasts."""
    disk.fail(wrong)
    yield
    disk.heal()


@pytest.mark.parametrize(
    "wrong",
    [
        Faults(errors={"fsync": "EIO"}, names="*.wal"),
        Faults(errors={"write": "EIO"}, names="*.wal"),
        Faults(errors={"write": "ENOSPC", "create": "ENOSPC"}),
        Faults(errors={"read": "EIO"}, names="OWNER"),
    ],
    ids=["sync", "write", "full", "token"],
)
def test_broker_on_a_failing_disk_ends_and_the_next_has_every_acked_record(tmp_path, wrong):
    with FaultyFolder(tmp_path / "dfs", tmp_path / "behind") as disk:
        end_a_broker(tmp_path / "broker", disk.path, failing(disk, wrong))


@contextlib.contextmanager
def small_file_system(folder):
    folder.mkdir()
    options = ["-o", f"size={TMPFS_BYTES}"]
    subprocess.run(["mount", "-t", "tmpfs", *options, "tmpfs", folder], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", folder], check=True)


def fill(file):
    """Fills a file system."""
    with contextlib.suppress(OSError):  # full
        while True:
            file.write(bytes(1 << 12))


@contextlib.contextmanager
def filled(folder):
    """Keeps a file system full for as long as a block lasts, also where files are removed."""
    enough, pause = threading.Event(), threading.Event()
    filler = folder / "filler"

    def fill():
        with filler.open("wb", buffering=0) as file:
            while not enough.is_set():
                try:
                    file.write(bytes(1 << 12))
                except OSError:  # full; some of it may become free
                    pause.wait(0.001)

    thread = threading.Thread(target=fill)
    thread.start()
    yield
    enough.set()
    thread.join()
    filler.unlink()


def test_broker_on_a_full_file_system_ends_and_the_next_has_every_acked_record(tmp_path):
    folder = tmp_path / "dfs"
    with small_file_system(folder):
        end_a_broker(tmp_path / "broker", folder, filled(folder), said="no space left")


def test_broker_on_a_full_file_system_stops_cleanly(tmp_path):
    folder = tmp_path / "dfs"
    with small_file_system(folder):
        filler = folder / "filler"
        broker = BrokerServer(tmp_path / "broker", storage={"dfs": folder}, lane=LANE)
        with broker:
            make_topic(broker.bootstrap, TOPIC)
            with Numbers(broker.bootstrap) as numbers:
                numbers.wait_for_more()
            with filler.open("wb", buffering=0) as file:
                fill(file)
            producer = Producer({"bootstrap.servers": broker.bootstrap})
            for _ in range(FEW):
                producer.produce(TOPIC, str(numbers.acked).encode(), partition=0)
                assert producer.flush(30) == 0
                numbers.acked += 1
            assert broker.stop() == 0
            assert "stopped cleanly" in broker.log.read_text()
        filler.unlink()
        with broker:
            assert read_all(broker.bootstrap, numbers.acked) == list(range(numbers.acked))
