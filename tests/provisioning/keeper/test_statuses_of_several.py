"""What the statuses of three brokers add up to: groups of which others lead the partitions."""

import asyncio

from confluent_kafka import Producer

from provisioning.cell.samples import groups_at
from provisioning.cell.status.groups import groups_in
from provisioning.cell.status.picture import Picture
from provisioning.cell.status.reader import read_on
from tests.brokers.test_several_brokers import PARTITIONS, SLOTS, TOPIC, create_topic, leaders_of
from tests.brokers.test_several_brokers import running_brokers as three_brokers
from tests.provisioning.keeper.test_status import commit, lags
from tests.provisioning.keeper.world import LIMIT_S
from tests.supervisor.run import wait_until

NOW_MS = 1_700_000_000_000
GROUP = "billing"
# Of the two records of each partition the second one waits.
CONSUMED = 1
AGES_S = {index: 10.0 + index for index in range(PARTITIONS)}


def produce(broker):
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    for index, age_s in AGES_S.items():
        for extra_s in (5, 0):
            made_ms = NOW_MS - round(1000 * (age_s + extra_s))
            producer.produce(TOPIC, b"x", partition=index, timestamp=made_ms)
    assert producer.flush(LIMIT_S) == 0


def is_committed(broker):
    """Whether the coordinator took the offsets; it moves while brokers come."""
    try:
        commit(broker, GROUP, {(TOPIC, index): CONSUMED for index in AGES_S})
    except AssertionError:
        return False
    return True


def test_lag_in_seconds_is_known_whoever_leads_a_partition(tmp_path):
    with three_brokers(tmp_path) as brokers:
        create_topic(brokers[0], replicas=SLOTS)
        produce(brokers[0])
        wait_until(lambda: is_committed(brokers[0]), "the group's coordinator stays")
        assert set(leaders_of(brokers[0])) == set(range(SLOTS)), "each of them leads some"
        pictures = {broker.metrics_address: Picture(slot) for slot, broker in brokers.items()}

        def shown():
            if not asyncio.run(read_on(pictures, timeout_s=LIMIT_S)):
                return None
            sampled = groups_at({"groups": groups_in(list(pictures.values()))}, NOW_MS)
            return {entry["group"]: lags(entry) for entry in sampled}.get(GROUP)

        expected = {(TOPIC, index): (1, age_s) for index, age_s in AGES_S.items()}
        wait_until(lambda: shown() == expected, "all partitions have a lag in seconds")
