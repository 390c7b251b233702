"""A real broker on a real etcd and a real S3, while these are slow, cut off, or down."""

import signal
import threading
import time
from contextlib import contextmanager

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from tests.brokers.proxy import cut_way
from tests.clients.servers import BrokerServer
from tests.etcd import running_etcd
from tests.s3 import running_s3

TOPIC = "numbers"
MORE = 200
PATIENCE_S = 90


class Numbers:
    """Produces 0, 1, 2, … one after another, and reads what the topic has, until told to stop."""

    def __init__(self, bootstrap):
        self.bootstrap = bootstrap
        self.acked = 0
        self.read = []
        self._changed = threading.Condition()
        self._stop = threading.Event()
        self._all_produced = threading.Event()
        self._producing = threading.Thread(target=self._produce)
        self._consuming = threading.Thread(target=self._consume)

    def wait_for_more(self):
        """Waits until many more were acknowledged and read, each of them produced after this."""
        with self._changed:
            goal = self.acked + MORE
            reached = self._changed.wait_for(
                lambda: self.acked >= goal and len(self.read) >= goal, PATIENCE_S
            )
        assert reached, f"{self.acked} acknowledged, {len(self.read)} read, {goal} wanted"

    def _produce(self):
        settings = {"bootstrap.servers": self.bootstrap, "enable.idempotence": True, "linger.ms": 0}
        producer = Producer(settings)
        number = 0
        while not self._stop.is_set():
            acked = threading.Event()
            producer.produce(
                TOPIC,
                str(number).encode(),
                partition=0,
                on_delivery=lambda error, _, acked=acked: error or acked.set(),
            )
            assert producer.flush(PATIENCE_S) == 0
            assert acked.is_set()
            number += 1
            with self._changed:
                self.acked = number
                self._changed.notify_all()

    def _consume(self):
        consumer = Consumer({"bootstrap.servers": self.bootstrap, "group.id": "readers"})
        consumer.assign([TopicPartition(TOPIC, 0, 0)])
        while not self._all_produced.is_set() or len(self.read) < self.acked:
            message = consumer.poll(0.1)
            if message is None:
                continue
            assert message.error() is None, message.error()
            with self._changed:
                self.read.append(int(message.value()))
                self._changed.notify_all()
        consumer.commit(offsets=[TopicPartition(TOPIC, 0, len(self.read))], asynchronous=False)
        consumer.close()

    def __enter__(self):
        self._producing.start()
        self._consuming.start()
        return self

    def __exit__(self, kind, error, traceback):
        self._stop.set()
        self._producing.join()
        self._all_produced.set()
        self._consuming.join()


def make_topic(bootstrap, name):
    """Makes a topic, as soon as the broker can write that down."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    until = time.monotonic() + PATIENCE_S
    while True:
        [made] = admin.create_topics([NewTopic(name, 1, 1)], operation_timeout=30).values()
        try:
            return made.result()
        except KafkaException as error:
            # An earlier try that was told to have failed.
            if error.args[0].name() == "TOPIC_ALREADY_EXISTS":
                return None
            if time.monotonic() > until:
                raise


def wait_for_log(broker, text, count):
    """Waits until the broker has said something so many times."""
    pause = threading.Event()
    for _ in range(PATIENCE_S * 20):
        if broker.log.read_text().count(text) >= count:
            return
        pause.wait(0.05)
    message = f"never said {text!r}:\n{broker.log.read_text()[-3000:]}"
    raise AssertionError(message)


@contextmanager
def silent(etcd, proxy):
    etcd.send(signal.SIGSTOP)
    yield
    etcd.send(signal.SIGCONT)


@contextmanager
def partitioned(etcd, proxy):
    proxy.swallow()
    yield
    proxy.heal()


@contextmanager
def down(etcd, proxy):
    etcd.stop(signal.SIGKILL)
    yield
    etcd.start()


@pytest.fixture(scope="module")
def etcd(tmp_path_factory):
    with running_etcd(tmp_path_factory.mktemp("etcd")) as server:
        yield server


@pytest.mark.parametrize("outage", [silent, partitioned, down])
def test_leader_serves_while_etcd_is_away(tmp_path, etcd, outage):
    with cut_way(etcd.address) as proxy:
        location = etcd.location().replace(etcd.address, proxy.address)
        broker = BrokerServer(tmp_path, storage={"metadata": location})
        with broker:
            make_topic(broker.bootstrap, TOPIC)
            with Numbers(broker.bootstrap) as numbers:
                numbers.wait_for_more()
                with outage(etcd, proxy):
                    wait_for_log(broker, "metadata store is away", 1)
                    numbers.wait_for_more()
                make_topic(broker.bootstrap, "after")
                numbers.wait_for_more()
            assert numbers.read == list(range(numbers.acked))
            assert broker.stop() == 0
        # A new incarnation leads what the metadata says, and finds all of it.
        with broker:
            assert read_all(broker.bootstrap, numbers.acked) == numbers.read


def read_all(bootstrap, count):
    """What the topic has, from its beginning; no more than so many may be there."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "all"})
    partition = TopicPartition(TOPIC, 0, 0)
    assert consumer.get_watermark_offsets(partition, PATIENCE_S) == (0, count)
    consumer.assign([partition])
    read: list[int] = []
    while len(read) < count:
        messages = consumer.consume(count - len(read), PATIENCE_S)
        assert messages, f"{len(read)} of {count} were read"
        assert not any(message.error() for message in messages)
        read += [int(message.value()) for message in messages]
    consumer.close()
    return read


def objects(s3, bucket):
    pages = s3.client().get_paginator("list_objects_v2").paginate(Bucket=bucket)
    return {each["Key"] for page in pages for each in page.get("Contents", [])}


def wait_for_objects(s3, bucket, known):
    """Waits until lanes were split into objects besides those that are known."""
    pause = threading.Event()
    for _ in range(PATIENCE_S * 20):
        now = {key for key in objects(s3, bucket) if "/objects/" in key}
        if now - known:
            return now
        pause.wait(0.05)
    message = f"no object but {known}"
    raise AssertionError(message)


def test_broker_with_s3_and_etcd_loses_nothing_to_outages_and_kills(tmp_path, etcd):
    folder = tmp_path / "s3"
    folder.mkdir()
    with running_s3(folder) as s3:
        storage = {"metadata": etcd.location(), "bucket": s3.make_bucket("bucket")}
        # Files that are split within moments, and a cache that does not hold what was.
        lane = {"file_bytes_first": 1 << 16, "file_bytes_max": 1 << 16, "roll_after_ms": 300}
        broker = BrokerServer(tmp_path, storage=storage, lane=lane, cache={"hot_bytes": 1 << 16})
        with broker:
            make_topic(broker.bootstrap, TOPIC)
            with Numbers(broker.bootstrap) as numbers:
                numbers.wait_for_more()
                split = wait_for_objects(s3, "bucket", set())
                s3.stop(signal.SIGKILL)
                wait_for_log(broker, "object store: trying again", 1)
                numbers.wait_for_more()
                s3.start()
                wait_for_objects(s3, "bucket", split)
            assert numbers.read == list(range(numbers.acked))
            broker.kill()
            broker.start()
            assert read_all(broker.bootstrap, numbers.acked) == numbers.read
            assert broker.stop() == 0
        # All records were split when it ended: these are read from S3.
        with broker:
            assert read_all(broker.bootstrap, numbers.acked) == numbers.read
