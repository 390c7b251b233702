"""The agent's process beside a real broker: killed, doubled, stopped, and never wrong."""

import urllib.error
from collections import Counter

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from brokers.usage import UsageReader
from metering.events.records import decode_usage
from metering.events.store import FolderUsageStore, list_manifests, read_manifest
from metering.events.times import DAY_MS
from tests.brokers.logscan import LogScan
from tests.metering.agent.processes import (
    CELL,
    CLUSTER,
    AgentServer,
    make_broker,
    make_spec,
    wait_until,
)

TOPIC = "orders"


@pytest.fixture
def folder(tmp_path):
    make_folder = tmp_path / "cell"
    make_folder.mkdir()
    return make_folder


@pytest.fixture
def broker(folder):
    with make_broker(folder) as broker:
        make_spec(folder)
        admin = AdminClient({"bootstrap.servers": broker.bootstrap})
        admin.create_topics([NewTopic(TOPIC, 2)])[TOPIC].result(30)
        yield broker


def produce(broker, count):
    producer = Producer({"bootstrap.servers": broker.bootstrap, "acks": "all", "linger.ms": 1})
    for number in range(count):
        producer.produce(TOPIC, f"record {number}".encode() * 10, partition=number % 2)
        if number % 20 == 0:
            producer.flush(30)
    assert producer.flush(30) == 0


def consume(broker, count):
    consumer = Consumer(
        {
            "bootstrap.servers": broker.bootstrap,
            "group.id": "readers",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
        }
    )
    consumer.subscribe([TOPIC])
    read = 0
    while read < count:
        read += len(consumer.consume(count - read, 1.0))
    consumer.close()


def rows(folder):
    """Rows that count, each identity once; and how often they were said."""
    store = FolderUsageStore(folder / "usage")
    said = 0
    by_identity: dict[tuple[object, ...], dict[str, object]] = {}
    for key in list_manifests(store, CELL, since_ms=1_700_000_000_000, until_ms=FAR):
        manifest = read_manifest(store, key, verify=True)
        for row in decode_usage(store.get(manifest.key)).to_pylist():
            said += 1
            emitted = row.pop("emitted_at_ms")
            assert emitted == manifest.emitted_at_ms
            names = ("incarnation", "lane_file", "block", "topic_id", "partition", "principal")
            identity = tuple(row[name] for name in (*names, "meter"))
            identity += () if row["block"] is not None else (row["window_start_ms"],)
            assert by_identity.setdefault(identity, row) == row
    return list(by_identity.values()), said


FAR = 1_700_000_000_000 + 10_000 * DAY_MS


def sums(folder):
    all_rows, _ = rows(folder)
    total: Counter[str] = Counter()
    for row in all_rows:
        if row["lane_file"] is not None and row["billed"]:
            total[row["meter"]] += row["quantity"]
    return total


def stored(folder):
    """Bytes of the topic's batches by an independent scan."""
    scan = LogScan(folder / "dfs", folder / "bucket", folder / "metadata.sqlite", CLUSTER)
    return sum(batch.size for partition in (0, 1) for batch in scan.batches(TOPIC, partition))


def test_an_agent_that_is_killed_again_and_again_says_the_same(folder, broker):
    agents = [AgentServer(folder, "one", rows_max=50), AgentServer(folder, "two", rows_max=50)]
    with agents[0], agents[1]:
        for turn in range(6):
            produce(broker, 200)
            agents[turn % 2].kill()
            agents[turn % 2].start()
        consume(broker, 6 * 200)
        broker.stop()
        wait_until(lambda: sums(folder)["ingress_bytes"] >= stored(folder), "all is metered")
        for agent in agents:
            assert agent.stop() == 0
    assert sums(folder)["ingress_bytes"] == stored(folder)
    # Each batch was handed over once, or again with what a fetch cut off.
    assert sums(folder)["egress_bytes"] >= stored(folder)


def test_indexes_go_and_lost_progress_changes_nothing(folder, broker):
    reader = UsageReader(dfs=folder / "dfs", bucket=folder / "bucket")
    with AgentServer(folder) as agent:

        def dropped():
            # The last index stays until there is a later one.
            produce(broker, 20)
            return agent.metric("freshet_metering_indexes_dropped_total") >= 3

        wait_until(dropped, "indexes were dropped")
        agent.kill()
        (progress,) = (folder / "progress").glob("*.json")
        progress.unlink()
        agent.start()
        broker.stop()
        wait_until(lambda: sums(folder)["ingress_bytes"] >= stored(folder), "all is metered")
        assert agent.metric("freshet_metering_errors_total") == 0
    assert sums(folder)["ingress_bytes"] == stored(folder)
    (lane,) = reader.lanes(CLUSTER)
    assert len(lane.indexes) <= 2


def test_a_lane_that_stays_idle_is_metered_once_its_file_has_ended(folder, broker):
    with AgentServer(folder):
        # The broker goes on, and nobody writes any more.
        produce(broker, 10)
        scanned: list[int] = []

        def all_is_metered():
            scanned.append(stored(folder))
            return sums(folder)["ingress_bytes"] >= scanned[-1] > 0

        wait_until(all_is_metered, "all is metered")
        assert sums(folder)["ingress_bytes"] == scanned[-1]


def test_the_pages_show_how_it_goes(folder, broker):
    with AgentServer(folder) as agent:
        produce(broker, 10)
        wait_until(lambda: agent.metric("freshet_metering_rows_total") > 0, "rows are written")
        wait_until(lambda: agent.metric("freshet_metering_clusters") == 1, "it says so")
        assert agent.page("/healthz") == "ok\n"
        assert agent.metric("freshet_metering_covered_until_seconds") > 1_700_000_000
        with pytest.raises(urllib.error.HTTPError, match="404"):
            agent.page("/")
        damaged = folder / "dfs" / CLUSTER / "lanes" / "00000000000000000009"
        damaged.mkdir()
        (damaged / "000000000000.idx").write_bytes(b"no index")
        wait_until(lambda: agent.metric("freshet_metering_errors_total") > 0, "damage is seen")
        wait_until(lambda: agent.metric("freshet_metering_clusters_failing") == 1, "it is said")
        assert "lane 9 cannot be read" in agent.log.read_text()
        assert agent.stop() == 0


def test_settings_that_make_no_sense_end_the_start(folder):
    agent = AgentServer(folder)
    agent.config.write_text(agent.config.read_text().replace("window_minutes = 5", "x = 1"))
    with pytest.raises(AssertionError, match=r"unknown setting agent\.x"):
        agent.start()
    assert agent.stop() == 2
