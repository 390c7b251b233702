"""`python -m brokers serve` as its supervisor sees it."""

import json
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request

import pytest

from tests.clients.servers import ROOT, BrokerServer


def run(*arguments):
    return subprocess.run(
        [sys.executable, "-m", "brokers", *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_signal_stops_cleanly(server, number):
    server.start()
    server.signal(number)
    assert server.wait() == 0
    lane = server.scan().lanes[1]
    assert server.scan().records_of_store[f"incarnation/{1:020}"]["state"] == "closed"
    assert lane.seal is None


def test_killed_broker_is_succeeded_by_the_next_start(server):
    server.start()
    server.kill()
    server.start()
    assert server.stop() == 0
    states = {
        int(key.rsplit("/", 1)[1]): record["state"]
        for key, record in server.scan().records_of_store.items()
        if key.startswith("incarnation/")
    }
    assert states == {1: "sealed", 2: "closed"}


def test_superseded_broker_ends_with_status_3(server, tmp_path):
    server.start()
    rival = BrokerServer(tmp_path / "rival")
    # The same storage behind another port.
    own, other = server.bootstrap, rival.bootstrap
    settings = server.config.read_text().replace(own, other)
    rival.config.write_text(settings.replace(server.metrics_address, rival.metrics_address))
    with rival:
        produce_one(server.bootstrap)
        assert server.wait() == 3
    assert "stands down" in server.log.read_text()


def produce_one(bootstrap):
    """Produces a record, because the broker checks its token only when it writes."""
    subprocess.run(
        ["kcat", "-b", bootstrap, "-t", "any", "-P", "-X", "message.timeout.ms=3000"],
        input=b"x\n",
        capture_output=True,
        check=False,
    )


def test_start_that_fails_says_why(server):
    with socket.socket() as taken:
        host, port = server.bootstrap.split(":")
        taken.bind((host, int(port)))
        taken.listen()
        result = run("serve", "--config", str(server.config))
    assert result.returncode == 1
    assert f"cannot listen on {server.bootstrap}" in result.stderr
    assert result.stdout == ""


def test_settings_that_make_no_sense_end_with_status_2(server):
    result = run("serve", "--config", str(server.config), "--set", "topics.default_partitions=0")
    assert result.returncode == 2
    assert "topics.default_partitions: must be above 0" in result.stderr
    assert run("serve").returncode == 2


def test_metrics_and_health_are_served(server):
    with server:
        produce_one(server.bootstrap)
        health = urllib.request.urlopen(f"http://{server.metrics_address}/healthz")
        assert (health.status, health.read()) == (200, b"ok\n")
        metrics = urllib.request.urlopen(f"http://{server.metrics_address}/metrics")
        assert metrics.headers["Content-Type"].startswith("application/openmetrics-text")
        text = metrics.read().decode()
        with pytest.raises(urllib.error.HTTPError, match="404"):
            urllib.request.urlopen(f"http://{server.metrics_address}/")
    for line in (
        "freshet_incarnation 1",
        'kafka_server_brokertopicmetrics_messagesin_total{topic="any"} 1',
        'kafka_network_requestmetrics_requests_total{request="Produce"} 1',
        'freshet_lane_blocks_total{kind="data"} 1',
    ):
        assert f"{line}\n" in text
    assert text.endswith("# EOF\n")


def test_logs_are_json_where_asked(tmp_path):
    with BrokerServer(tmp_path, log={"format": "json"}) as server:
        pass
    lines = [json.loads(line) for line in server.log.read_text().splitlines()]
    assert {"timestamp", "level", "message", "target"} <= lines[0].keys()


def test_no_log_line_holds_a_secret(tmp_path):
    password, link_secret = "correct-horse-battery", "0123456789abcdef" * 4
    users = [{"name": "ada", "password": password, "mechanism": "SCRAM-SHA-256"}]
    listener = {"sasl": ["SCRAM-SHA-256"], "link": "127.0.0.1:0", "link_secret": link_secret}
    server = BrokerServer(
        tmp_path,
        log={"format": "json", "level": "trace"},
        listener=listener,
        security={"users": users, "super_users": ["User:ada"]},
    )
    wrong = "wrong-" + password
    with server:
        for given in (password, wrong):
            subprocess.run(
                ["kcat", "-b", server.bootstrap, "-L", "-m", "3"]
                + [f"-Xsasl.{key}={value}" for key, value in login("ada", given).items()]
                + ["-Xsecurity.protocol=SASL_PLAINTEXT"],
                capture_output=True,
                check=False,
            )
    text = server.log.read_text()
    said = [json.loads(line) for line in text.splitlines()]
    assert any(line["message"] == "closed a connection" for line in said)
    assert not [secret for secret in (password, link_secret, wrong) if secret in text]


def login(user, password):
    return {"mechanism": "SCRAM-SHA-256", "username": user, "password": password}


def test_inspect_needs_storage_and_does_not_create_it(server):
    result = run("inspect", "--config", str(server.config))
    assert result.returncode == 2
    assert "storage.dfs" in result.stderr
    assert not (server.folder / "dfs").exists()
