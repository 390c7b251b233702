"""`Broker`: one inside a test."""

import json
import socket
import subprocess

import pytest

from brokers import Broker
from brokers.errors import ConfigError, StoppedError
from tests.brokers.logscan import LogScan


def produce(bootstrap, topic, values):
    text = "".join(f"{value}\n" for value in values)
    command = ["kcat", "-b", bootstrap, "-t", topic, "-P", "-X", "acks=all"]
    subprocess.run(command, input=text.encode(), check=True, capture_output=True)


def consume(bootstrap, topic):
    command = ["kcat", "-b", bootstrap, "-t", topic, "-C", "-o", "beginning", "-e", "-q"]
    result = subprocess.run(command, check=True, capture_output=True, text=True)
    return result.stdout.split()


def test_records_survive_crash_restart_and_stop():
    with Broker() as broker:
        produce(broker.bootstrap, "kept", range(3))
        address = broker.bootstrap
        broker.crash()
        broker.restart()
        assert broker.bootstrap == address
        assert broker.incarnation == 2
        produce(broker.bootstrap, "kept", range(3, 5))
        broker.stop()
        broker.start()
        assert consume(broker.bootstrap, "kept") == ["0", "1", "2", "3", "4"]
    assert not broker.folder.exists()


def test_link_listener_greets_and_keeps_its_address():
    with Broker() as broker:
        assert broker.link_address is None
    with Broker(listener={"link": "127.0.0.1:0", "link_secret": "5e" * 32}) as broker:
        address = broker.link_address
        assert greeting_at(address) == b"FRLK\x00\x01"
        broker.crash()
        broker.restart()
        assert broker.link_address == address
        assert greeting_at(address) == b"FRLK\x00\x01"


def greeting_at(address):
    """The first bytes that a broker sends to a gateway, up to the nonce."""
    host, port = address.rsplit(":", 1)
    with socket.create_connection((host, int(port))) as connection:
        return connection.recv(6, socket.MSG_WAITALL)


def test_given_folder_is_kept(tmp_path):
    with Broker(tmp_path / "kept") as broker:
        produce(broker.bootstrap, "kept", ["a"])
    kept = broker.folder
    scan = LogScan(kept / "dfs", kept / "bucket", kept / "metadata.sqlite")
    assert [record.value for _, record in scan.records("kept")] == [b"a"]
    with Broker(tmp_path / "kept") as broker:
        assert consume(broker.bootstrap, "kept") == ["a"]


def test_sections_are_keywords():
    with Broker(topics={"auto_create": False}, listener={"metrics": ""}) as broker:
        assert broker.metrics_address is None
        command = ["kcat", "-b", broker.bootstrap, "-L", "-J"]
        listed = subprocess.run(command, check=True, capture_output=True)
        assert json.loads(listed.stdout)["topics"] == []
    with pytest.raises(ConfigError, match="unknown section"):
        Broker(topic={"auto_create": True})


def test_broker_that_does_not_run_says_so():
    broker = Broker()
    try:
        with pytest.raises(StoppedError, match="was not started"):
            _ = broker.bootstrap
        with pytest.raises(StoppedError, match="does not run"):
            broker.ended()
        broker.stop()
    finally:
        broker.close()


def supersede(folder):
    """Runs a broker until another one on the same storage made it stand down."""
    with Broker(folder) as broker, Broker(folder):
        # It notices at its next write.
        command = ["kcat", "-b", broker.bootstrap, "-t", "any", "-P"]
        impatient = ["-X", "message.timeout.ms=3000"]
        subprocess.run([*command, *impatient], input=b"x\n", capture_output=True, check=False)
        assert broker.ended(60.0) is not None


def test_leaving_a_broker_that_stood_down_raises(tmp_path):
    with pytest.raises(StoppedError, match="stood down"):
        supersede(tmp_path)


def test_two_brokers_share_a_process():
    with Broker() as one, Broker() as other:
        assert one.bootstrap != other.bootstrap
        produce(one.bootstrap, "mine", ["1"])
        produce(other.bootstrap, "mine", ["2"])
        assert consume(one.bootstrap, "mine") == ["1"]
        assert consume(other.bootstrap, "mine") == ["2"]
