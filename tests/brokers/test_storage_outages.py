"""A real broker on a real etcd and a real S3, while these are slow, cut off, or down."""

import signal
import threading
from contextlib import contextmanager

import pytest

from tests.brokers.numbers import TIMEOUT_S, TOPIC, Numbers, make_topic, read_all
from tests.brokers.proxy import cut_way
from tests.clients.servers import BrokerServer
from tests.etcd import running_etcd
from tests.s3 import running_s3

pytestmark = pytest.mark.full("stores")


def wait_for_log(broker, text, count):
    """Waits until the broker's log has a text `count` times."""
    pause = threading.Event()
    for _ in range(TIMEOUT_S * 20):
        if broker.log.read_text().count(text) >= count:
            return
        pause.wait(0.05)
    message = f"never said {text!r}:\n{broker.log.read_text()[-3000:]}"
    raise AssertionError(message)


@contextmanager
def silent(etcd, proxy):
    etcd.pause()
    yield
    etcd.unpause()


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
                    wait_for_log(broker, "the metadata store cannot be reached", 1)
                    numbers.wait_for_more()
                make_topic(broker.bootstrap, "after")
                numbers.wait_for_more()
            assert numbers.read == list(range(numbers.acked))
            assert broker.stop() == 0
        # A new incarnation leads what the metadata says, and finds all of it.
        with broker:
            assert read_all(broker.bootstrap, numbers.acked) == numbers.read


def objects(s3, bucket):
    pages = s3.client().get_paginator("list_objects_v2").paginate(Bucket=bucket)
    return {content["Key"] for page in pages for content in page.get("Contents", [])}


def wait_for_objects(s3, bucket, known):
    """Waits until lanes were split into objects that are not among the known ones."""
    pause = threading.Event()
    for _ in range(TIMEOUT_S * 20):
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
