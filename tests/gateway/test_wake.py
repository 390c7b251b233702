"""Clients of a cluster that sleeps, or whose broker is killed."""

import random
import re
import sys
import threading

import confluent_kafka
from confluent_kafka.admin import AdminClient, NewTopic

from tests.brokers.logscan import LogScan
from tests.gateway.cells import PASSWORD, USER, GatewayServer, KeeperStandIn, until
from tests.gateway.raw import Raw, metric

RECORDS, KILLS, PARTITIONS = 6000, 3, 3
TIMEOUT_S = 60


def login(spec):
    return {
        "bootstrap.servers": f"127.0.0.1:{spec.ports[0]}",
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "SCRAM-SHA-256",
        "sasl.username": USER,
        "sasl.password": PASSWORD,
        "log_level": 0,
        "reconnect.backoff.ms": 20,
        "reconnect.backoff.max.ms": 200,
        "retry.backoff.ms": 20,
    }


def test_many_clients_wake_a_cluster_once_and_all_are_served(cell):
    spec = cell.add_cluster("cl_asleep")
    with KeeperStandIn(cell, spec) as keeper, GatewayServer(cell) as gateway:
        assert keeper.starts == 0
        clients = [Raw.plain(spec.ports[0]) for _ in range(10)]
        threads = [threading.Thread(target=c.log_in, args=(USER, PASSWORD)) for c in clients]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for client in clients:
            assert client.metadata()
        # The stand-in counts a start after it said that the broker runs.
        keeper.wait_for_start(1)
        assert keeper.starts == 1
        address = gateway.ready["metrics"]
        assert metric(address, f'freshet_gateway_wakes_total{{cluster="{spec.id}"}}') == 1
        assert metric(address, "freshet_gateway_wake_seconds_count") >= 1
        assert re.fullmatch(r"gateway con_[0-9a-f]{16}", keeper.asked_by)


def test_a_cluster_that_is_not_there_yet_is_served_once_it_is(cell):
    with GatewayServer(cell) as gateway:
        assert gateway.ready["plain"] == "0"
        spec = cell.add_cluster("cl_late")
        with KeeperStandIn(cell, spec):
            until(lambda: connects(spec), "the gateway listens for it")
            client = Raw.plain(spec.ports[0])
            client.log_in(USER, PASSWORD)
            assert client.metadata()
        cell.store.remove_cluster(spec.id)
        until(lambda: not connects(spec), "the gateway listens no more")


def connects(spec):
    try:
        Raw.plain(spec.ports[0]).close()
    except ConnectionRefusedError:
        return False
    return True


def test_a_broker_killed_under_idempotent_clients_loses_and_duplicates_nothing(cell):
    spec = cell.add_cluster("cl_killed")
    seed = random.randrange(1 << 32)
    sys.stdout.write(f"seed {seed}\n")
    points = sorted(random.Random(seed).sample(range(1, int(RECORDS * 0.9)), KILLS))
    places = {}
    with KeeperStandIn(cell, spec) as keeper, GatewayServer(cell):
        admin = AdminClient(login(spec))
        for future in admin.create_topics([NewTopic("orders", PARTITIONS)]).values():
            future.result()
        producer = confluent_kafka.Producer(
            {**login(spec), "enable.idempotence": True, "batch.num.messages": 20}
        )
        failures = []

        def noted(number):
            def report(error, message):
                if error is None:
                    places[number] = (message.partition(), message.offset())
                else:
                    failures.append(error)

            return report

        due = list(points)
        for number in range(RECORDS):
            producer.produce("orders", str(number), on_delivery=noted(number))
            producer.poll(0)
            if due and len(places) >= due[0]:
                due.pop(0)
                keeper.kill()
            elif number % 100 == 99:
                producer.flush(TIMEOUT_S)
        for _ in due:
            keeper.kill()
        assert producer.flush(TIMEOUT_S) == 0
        assert failures == []
        starts = keeper.starts
    assert starts == KILLS + 1
    stored = {}
    dfs, bucket, metadata = (cell.folder / name for name in ("dfs", "bucket", "metadata.sqlite"))
    for partition, record in LogScan(dfs, bucket, metadata, spec.id).records("orders"):
        number = int(record.value or b"")
        assert number not in stored, f"{number} is there twice"
        stored[number] = (partition, record.offset)
    assert stored == places
    assert len(stored) == RECORDS


def test_clients_see_the_end_of_a_killed_broker_at_once(cell):
    spec = cell.add_cluster("cl_ended")
    with KeeperStandIn(cell, spec) as keeper, GatewayServer(cell):
        client = Raw.plain(spec.ports[0])
        client.log_in(USER, PASSWORD)
        assert client.metadata()
        keeper.kill()
        assert client.is_closed()
