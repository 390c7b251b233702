"""A broker that slept through its own fencing: what it wrote afterwards is nobody's to pay."""

from __future__ import annotations

import contextlib
import json
import signal
from collections import Counter
from datetime import UTC, datetime

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from tests.metering.proof.agents import Agents
from tests.metering.proof.tenants import USERS, TenantCell
from tests.metering.proof.usage_folder import UsageFolder
from tests.metering.proof.verdict import judge_tenant
from tests.spark.oracle import roll_up

TOPIC = "orders"
WAIT_S = 120.0
RECORDS = 50


def send(producer, acked):
    """Records that begin with their writer, for the scan."""
    for number in range(RECORDS):
        value = f"User:{USERS[0]} {number} ".encode() + bytes(number)
        producer.produce(TOPIC, value, on_delivery=lambda error, _: acked.append(error))


def read(login, count):
    """Reads so many records from the start."""
    consumer = Consumer({**login, "group.id": "readers", "enable.auto.commit": False})
    consumer.assign([TopicPartition(TOPIC, 0, 0)])
    while count > 0:
        count -= len([m for m in consumer.consume(count, timeout=1.0) if m.error() is None])
    consumer.close()


def billed(usage, folder, days):
    """Billed quantities by (cluster, meter, topic, principal), by the oracle."""
    sums: Counter[tuple[str, str, str, str]] = Counter()
    for day in days:
        manifest = folder / f"{day}.json"
        manifest.write_text(json.dumps(usage.run_manifest(f"run_{day}", day)))
        for row in roll_up(manifest).days:
            if row["billed"]:
                whose = (row["cluster_id"], row["meter"], row["topic_id"], row["principal"])
                sums[whose] += int(row["quantity"])
    return sums


@pytest.mark.timeout(300)
def test_what_a_zombie_wrote_is_not_billed(tmp_path):
    began = datetime.now(UTC).date()
    cell = TenantCell(tmp_path / "cell", tenants=1)
    agents = Agents(cell)
    usage = UsageFolder(tmp_path / "cell" / "usage", tmp_path / "late", seed=1)
    (tenant,) = cell.tenants
    acked: list[object] = []
    with contextlib.closing(agents), cell:
        tenant.create_topics([TOPIC], 1)
        agents.start("agent")
        # Plain, so that what is sent twice is stored twice, and no duplicate hides in a sequence.
        producer = Producer({**tenant.login(USERS[0]), "acks": "all", "linger.ms": 1})
        send(producer, acked)
        assert producer.flush(WAIT_S) == 0

        tenant.server.signal(signal.SIGSTOP)
        send(producer, acked)
        producer.poll(1.0)
        other = cell.broker("other", tenant.cluster_id, tenant.proxy.port)
        with other:
            # It has fenced the one that sleeps; that one wakes with requests in its socket, stands
            # down, and is started again, which fences the other.
            tenant.server.signal(signal.SIGCONT)
            tenant.supervisor.wait_for_start(2)
            assert producer.flush(WAIT_S) == 0
            other.wait()
        read(tenant.login(USERS[2]), 2 * RECORDS)
        cell.learn_topics()
        cell.stop_brokers()
        agents.wait_until_all_is_recorded(cell, usage)

    assert acked == [None] * (2 * RECORDS)
    days = sorted({str(began), str(datetime.now(UTC).date())})
    judged = judge_tenant(tenant, cell.scan(tenant), billed(usage, tmp_path, days))
    assert judged.ingress.billed == judged.ingress.truth != {}
    assert judged.egress.billed == judged.egress.truth != {}
    assert judged.acked_beyond_log == 0
    assert judged.proxy_errors == ()
