"""A quota is the cluster's: its brokers share it by what clients ask of each."""

import itertools
import os
import threading
import time

import pytest
from confluent_kafka import Producer

from brokers.metadata import CellStore, QuotaEntity
from tests.brokers import test_several_brokers as several
from tests.supervisor.run import wait_until

CLIENT_ID = "bound"
RATE = 200_000
# What may be taken at once.
BURST = 10 * RATE
VALUE = os.urandom(5_000)
MEASURED_S = 8
# Shares follow a change of the load for so long.
DEALT_S = 5
# The least shares of the brokers that are not used are lost, and requests are larger than records.
TOLERANCE = 0.2


class Bound:
    """Produces as much as it may to some partitions, until it is ended."""

    def __init__(self, bootstrap, partitions):
        self.acked_bytes = 0
        self.errors = []
        self.throttled_by = set()
        self._partitions = itertools.cycle(partitions)
        self._producer = Producer(
            {
                **several.KAFKA_CLIENT,
                "bootstrap.servers": bootstrap,
                "client.id": CLIENT_ID,
                "linger.ms": 0,
                "max.in.flight": 1,
                "batch.num.messages": 2,
                # So that what is left when it ends is little.
                "queue.buffering.max.messages": 40,
                "throttle_cb": self._note_throttle,
            }
        )
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self):
        while not self._ending.is_set():
            try:
                self._producer.produce(
                    several.TOPIC,
                    VALUE,
                    partition=next(self._partitions),
                    on_delivery=self._delivered,
                )
            except BufferError:
                self._producer.poll(0.01)
            self._producer.poll(0)
        self._producer.flush(several.TIMEOUT_S)

    def _delivered(self, error, message):
        if error is None:
            self.acked_bytes += len(message.value())
        else:
            self.errors.append(error)

    def _note_throttle(self, event):
        if event.throttle_time > 0:
            self.throttled_by.add(event.broker_id)

    def seconds_for(self, count):
        """How long so many bytes take from now on."""
        begun = time.monotonic()
        last = self.acked_bytes + count
        wait_until(lambda: self.acked_bytes >= last, f"{count} bytes are produced")
        return time.monotonic() - begun

    def end(self):
        self._ending.set()
        self._thread.join()


@pytest.fixture
def brokers(tmp_path):
    """Slot → its broker, with a quota of one client id."""
    with several.running_brokers(tmp_path) as running:
        store = CellStore(tmp_path / "metadata.sqlite").cluster(several.CLUSTER)
        store.set_quota(QuotaEntity(client_id=CLIENT_ID), {"producer_byte_rate": RATE})
        several.create_topic(running[0], replicas=several.SLOTS)
        several.wait_spread(running)
        yield running


def assert_bound(bootstrap, partitions, slots, free):
    """Whoever produces to these partitions gets the quota, and learns of it from their leaders."""
    load = Bound(bootstrap, partitions)
    try:
        load.seconds_for(free + DEALT_S * RATE)
        took_s = load.seconds_for(MEASURED_S * RATE)
        rate = MEASURED_S * RATE / took_s
        assert rate == pytest.approx(RATE, rel=TOLERANCE)
        wait_until(lambda: load.throttled_by == slots, "the leaders ask it to pause")
    finally:
        load.end()
    assert not load.errors


def test_a_quota_holds_for_all_brokers_together(brokers):
    bootstrap = ",".join(broker.bootstrap for broker in brokers.values())
    partitions = several.topics_of(brokers[0])[several.TOPIC].partitions
    assert_bound(bootstrap, list(partitions), set(brokers), BURST)
    # Where all of it goes to one of them, that one gets what the others do not use.
    of_one = [index for index, known in partitions.items() if known.leader == 1]
    assert_bound(bootstrap, of_one, {1}, 0)
