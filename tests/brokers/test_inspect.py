"""The inspector reports what is on storage, and names the file where something is damaged."""

import json
import subprocess
import sys

import pytest

from brokers import Broker, _core
from brokers.errors import StorageError
from brokers.inspection import inspect_storage
from tests.brokers.test_embedded import produce

LANE = {"file_bytes_first": 65536, "file_bytes_max": 65536, "roll_after_ms": 60_000}


@pytest.fixture
def stopped(tmp_path):
    """A broker that was killed once: a sealed lane that was split, and a closed one."""
    broker = Broker(tmp_path, lane=LANE)
    broker.start()
    produce(broker.bootstrap, "orders", range(100))
    broker.crash()
    broker.restart()
    produce(broker.bootstrap, "orders", range(100, 200))
    broker.stop()
    yield broker
    broker.close()


def report_of(broker, **asked):
    return json.loads(_core.inspect(broker.settings, **asked))


def test_everything_is_reported_and_sound(stopped, capsys):
    report = report_of(stopped, verify=True)
    assert report["damage"] == []
    states = {lane["incarnation"]: lane["state"] for lane in report["lanes"]}
    assert states == {1: "sealed", 2: "closed"}
    assert report["lanes"][0]["owner"] == 2
    assert report["lanes"][0]["seal"]["end"] == report["lanes"][0]["end"]
    for lane in report["lanes"]:
        written = [f["written_ms"] for f in lane["leftovers"] + lane["files"] if f["written_ms"]]
        assert written
        assert written == sorted(written)
        assert all(0 < first <= last for first, last in written)
    (partition,) = (p for p in report["partitions"] if p["topic"] == "orders")
    assert partition["dropped"] == 0
    assert (partition["log_start"], partition["covered_end"]) == (0, 200)
    assert sum(o["bytes"] for o in report["objects"]) == partition["bytes"]
    assert inspect_storage(stopped.settings, verify=True, lane=None, topic=None, as_json=False) == 0
    assert "0 damaged (every checksum)" in capsys.readouterr().out


def test_one_lane_or_one_topic_is_shown_alone(stopped):
    assert [lane["incarnation"] for lane in report_of(stopped, lane=2)["lanes"]] == [2]
    by_name = report_of(stopped, topic="orders")
    (partition,) = by_name["partitions"]
    assert by_name["lanes"] == []
    assert report_of(stopped, topic=partition["topic_id"])["partitions"] == [partition]
    with pytest.raises(StorageError, match="there is no lane 9"):
        report_of(stopped, lane=9)
    with pytest.raises(StorageError, match="there is no topic none"):
        report_of(stopped, topic="none")


def flip(path, at):
    """Flips one bit of a byte; a negative place counts from the end."""
    raw = bytearray(path.read_bytes())
    raw[at] ^= 1
    path.write_bytes(raw)


@pytest.mark.parametrize(
    ("pattern", "at"),
    [
        ("bucket/*/objects/*/*", 200),  # a chunk
        ("bucket/*/objects/*/*", -1),  # a section
        ("bucket/*/manifests/*/*/*", 40),
        ("dfs/*/lanes/*/*.idx", 100),
        ("dfs/*/lanes/*/SEAL", 30),
        ("dfs/*/lanes/*1/OWNER", 10),
    ],
)
def test_damage_is_named_by_file(stopped, pattern, at, capsys):
    path = sorted(stopped.folder.glob(pattern))[-1]
    flip(path, at)
    report = report_of(stopped, verify=True)
    named = {damage["file"] for damage in report["damage"]}
    assert any(str(path).endswith(file) for file in named), (path, report["damage"])
    assert inspect_storage(stopped.settings, verify=True, lane=None, topic=None, as_json=True) == 4
    assert json.loads(capsys.readouterr().out)["damage"] == report["damage"]


def test_files_that_wait_or_are_of_no_use_are_shown(stopped, capsys):
    lane = stopped.folder / "dfs" / "local" / "lanes"
    folder = sorted(lane.iterdir())[-1]
    before = report_of(stopped, lane=2)["lanes"][0]
    assert before["others"] == []
    (folder / "000000000007.spare").write_bytes(bytes(4096))
    (folder / "draft-0123456789abcdef").write_bytes(b"half")
    after = report_of(stopped, lane=2, verify=True)
    assert after["damage"] == []
    assert after["lanes"][0]["spares"] == before["spares"] + 1
    assert after["lanes"][0]["others"] == ["draft-0123456789abcdef"]
    assert inspect_storage(stopped.settings, verify=False, lane=2, topic=None, as_json=False) == 0
    assert "other files: draft-0123456789abcdef" in capsys.readouterr().out


@pytest.mark.full("stores")
def test_damage_in_a_bucket_of_s3_is_named(s3_server, tmp_path):
    location = s3_server.make_bucket("inspected")
    with Broker(tmp_path, lane=LANE, storage={"bucket": location}) as broker:
        produce(broker.bootstrap, "orders", range(100))
        broker.stop()
        assert (
            inspect_storage(broker.settings, verify=True, lane=None, topic=None, as_json=True) == 0
        )
        client = s3_server.client()
        listed = client.list_objects_v2(Bucket="inspected")["Contents"]
        key = next(item["Key"] for item in listed if "/objects/" in item["Key"])
        raw = bytearray(client.get_object(Bucket="inspected", Key=key)["Body"].read())
        raw[200] ^= 1
        client.put_object(Bucket="inspected", Key=key, Body=bytes(raw))
        damage = report_of(broker, verify=True)["damage"]
        assert [item["file"] for item in damage] == [key]
        assert (
            inspect_storage(broker.settings, verify=True, lane=None, topic=None, as_json=True) == 4
        )


def test_damaged_lane_is_found_while_its_broker_is_dead(tmp_path):
    broker = Broker(tmp_path, lane=LANE)
    broker.start()
    for value in range(5):
        produce(broker.bootstrap, "orders", [value])
    broker.crash()
    path = next(tmp_path.glob("dfs/*/lanes/*/000000000000.wal"))
    flip(path, 2 * 4096 + 100)
    what = [damage["what"] for damage in report_of(broker)["damage"]]
    assert any("is missing" in text for text in what), what
    broker.close()


def test_running_broker_is_not_disturbed():
    with Broker() as broker:
        produce(broker.bootstrap, "orders", range(10))
        config = broker.folder / "broker.toml"
        config.write_text(broker.settings)
        command = [sys.executable, "-m", "brokers", "inspect", "--verify", "--config", str(config)]
        result = subprocess.run(command, check=False, capture_output=True, text=True)
        assert result.returncode == 0, result.stdout + result.stderr
        assert "lane 1, live, token of 1" in result.stdout
        produce(broker.bootstrap, "orders", range(10))
        assert broker.ended() is None
