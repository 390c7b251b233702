"""Real pods with real clients, which connect through a gateway outside the pods' network."""

import base64
import dataclasses
import itertools
import resource
import signal
import sys
import tomllib
from contextlib import contextmanager
from pathlib import Path

import pytest
from confluent_kafka import KafkaError, Producer
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    ResourceType,
)

from provisioning.cell.drivers.kubernetes.manifests import namespace_of
from tests.brokers.lanes import CLOSE
from tests.gateway.cells import GatewayServer, until
from tests.gateway.test_wake import login
from tests.kubernetes.pods.load import TIMEOUT_S, consume
from tests.kubernetes.pods.load import Producer as SteadyProducer
from tests.kubernetes.pods.world import is_ready, restarts_of
from tests.provisioning.keeper.written import newest_written

pytestmark = pytest.mark.full

PARTITIONS = 3
# Numbers for the names of clusters: each test has its own, and need not wait for another's
# deletion.
NUMBERS = itertools.count()


@pytest.fixture
def spec(cell):
    """The spec of a cluster that sleeps."""
    cluster_id = f"cl_pods{next(NUMBERS)}"
    cell.add_volume(cluster_id)
    yield cell.add_cluster(cluster_id)
    # Printed, so that a failed test shows it.
    sys.stdout.write(cell.explain(cluster_id))
    cell.remove_cluster(cluster_id)


@pytest.fixture
def served(cell, spec):
    """The same cluster, with a keeper and a gateway."""
    with cell.keeper(), GatewayServer(cell):
        yield cell


@contextmanager
def down(etcd):
    """Stops etcd at once, for the time of the block."""
    etcd.stop(signal.SIGKILL)
    try:
        yield
    finally:
        etcd.start()


def make_topic(spec, name="orders"):
    admin = AdminClient(login(spec))
    admin.create_topics([NewTopic(name, PARTITIONS)])[name].result(TIMEOUT_S)


def test_records_survive_whatever_happens_to_their_broker(served, spec, etcd):
    cell = served
    make_topic(spec)
    (broker,) = cell.wait_phase(spec.id, "running").brokers
    first = cell.pod(spec.id)
    assert broker.kafka.partition(":")[0] == first["status"]["podIP"]
    with SteadyProducer(login(spec), "orders") as producer:
        producer.wait_for_more(500)
        cell.kill_broker(spec.id)
        producer.wait_for_more(500)
        assert restarts_of(cell.pod(spec.id)) == 0, "PID 1 restarts it, and no container"
        cell.delete_pod(spec.id, grace_s=0)
        producer.wait_for_more(500)
        with down(etcd):
            # A broker that leads goes on serving.
            producer.wait_for_more(500)
        producer.wait_for_more(500)
    sleep(cell, spec, 2)
    cell.store.put_spec(dataclasses.replace(spec, generation=3))
    with SteadyProducer(login(spec), "orders", producer.sent) as second:
        second.wait_for_more(500)
    sent = {**producer.places, **second.places}
    assert consume(login(spec), "orders", len(sent)) == sent
    # The keeper is a client of the broker too.
    until(lambda: "orders" in sampled_topics(cell, spec), "a sample of the topics")
    places = {}
    for partition, record in cell.scan(spec.id).records("orders"):
        number = int(record.value or b"")
        assert number not in places, f"{number} is there twice"
        places[number] = (partition, record.offset)
    assert places == sent


def sampled_topics(cell, spec):
    sample = newest_written(cell.settings().cell.bucket, spec.id)
    return sample.content["topics"] if sample else {}


def sleep(cell, spec, generation):
    """Has the cluster sleep once no client is connected, and waits until it does."""
    cell.store.put_spec(dataclasses.replace(spec, generation=generation, idle_timeout_ms=1_000))
    cell.wait_phase(spec.id, "asleep")
    until(lambda: not cell.pods(spec.id), "no pod of a cluster that sleeps")


def test_a_pod_that_is_asked_to_end_closes_its_log(served, spec):
    cell = served
    make_topic(spec)
    with SteadyProducer(login(spec), "orders") as producer:
        producer.wait_for_more(100)
        # Another pod takes over while this one ends, and only one does.
        cell.delete_pod(spec.id)
        producer.wait_for_more(100)
    sleep(cell, spec, 2)
    scan = cell.scan(spec.id)
    assert sorted(scan.lanes) == [1, 2]
    assert scan.lanes[2].blocks[-1].kind == CLOSE
    numbers = [int(record.value or b"") for _, record in scan.records("orders")]
    assert sorted(numbers) == sorted(producer.places)


def test_a_broker_may_open_as_many_files_as_its_node_allows(served, spec):
    cell = served
    make_topic(spec)
    limits = Path(f"/proc/{cell.broker_process(spec.id)}/limits").read_text()
    (line,) = [line for line in limits.splitlines() if line.startswith("Max open files")]
    soft, hard = line.split()[3:5]
    assert soft == hard
    assert int(hard) >= resource.getrlimit(resource.RLIMIT_NOFILE)[1]


def test_a_broker_that_loads_for_long_is_not_killed(cell, spec):
    """The broker waits for a file before it serves, like one that reads many partitions."""
    wait = f"until [ -e /dfs/{spec.id}/loaded ]; do sleep 0.1; done"
    start = f'{wait}; exec python -m brokers run "$@"'
    options = {"command": ("bash", "-c", start, "bash")}
    with cell.keeper(options=options), GatewayServer(cell):
        cell.store.request_wake(spec.id, requested_at_ms=1, by="test")
        path = f"/api/v1/namespaces/{namespace_of(spec.id)}/events"

        def refused() -> int:
            events = cell.ask("GET", path).document.get("items", [])
            return sum(event.get("count", 1) for event in events if event["reason"] == "Unhealthy")

        # Longer than the readiness probe and a default liveness probe allow.
        until(lambda: refused() >= 6, "probes that a loading broker does not answer")
        status = cell.status(spec.id)
        assert status is not None
        assert status.phase == "starting"
        (cell.folder / "dfs" / spec.id / "loaded").touch()
        make_topic(spec)
        pod = cell.pod(spec.id)
        assert is_ready(pod)
        assert restarts_of(pod) == 0


def test_configs_change_without_a_restart(served, spec):
    cell = served
    make_topic(spec)
    pid, pod = cell.broker_process(spec.id), cell.pod(spec.id)["metadata"]["uid"]
    smaller = ConfigEntry("max.message.bytes", "2000", incremental_operation=AlterConfigOpType.SET)
    resource_of = ConfigResource(ResourceType.TOPIC, "orders", incremental_configs=[smaller])
    admin = AdminClient(login(spec))
    admin.incremental_alter_configs([resource_of])[resource_of].result(TIMEOUT_S)
    producer = Producer({**login(spec), "compression.type": "none"})
    errors = []
    producer.produce("orders", bytes(10_000), on_delivery=lambda error, _: errors.append(error))
    assert producer.flush(TIMEOUT_S) == 0
    assert [error.code() for error in errors] == [KafkaError.MSG_SIZE_TOO_LARGE]
    assert cell.broker_process(spec.id) == pid
    assert cell.pod(spec.id)["metadata"]["uid"] == pod


def test_other_settings_of_brokers_wait_for_their_next_start(cell, spec):
    secret = f"/api/v1/namespaces/{namespace_of(spec.id)}/secrets/broker-0"

    def settings():
        text = base64.b64decode(cell.ask("GET", secret).document["data"]["broker.toml"])
        return tomllib.loads(text.decode())

    with GatewayServer(cell):
        with cell.keeper():
            make_topic(spec)
            pid, pod = cell.broker_process(spec.id), cell.pod(spec.id)["metadata"]["uid"]
            assert "log" not in settings()
        with cell.keeper(log={"level": "warn"}):
            until(lambda: settings().get("log") == {"level": "warn"}, "the new settings")
            make_topic(spec, "clicks")
            assert cell.pod(spec.id)["metadata"]["uid"] == pod
            assert cell.broker_process(spec.id) == pid
