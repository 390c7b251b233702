"""Servers that the libraries are asked about: brokers of this checkout, and Apache Kafka."""

import pytest

from tests.clients.by_time.java import Java
from tests.clients.by_time.programs import programs
from tests.clients.by_time.python_libraries import Aiokafka, KafkaPython, Librdkafka
from tests.clients.servers import BrokerServer
from tests.peer.kafka import Peer

# Both servers look for old records as often.
INTERVAL_MS = 200


@pytest.fixture(scope="session")
def kafka():
    """Apache Kafka, which looks for old records often, and soon after its start."""
    peer = Peer("kafka1")
    with (peer.folder / "node1.properties").open("a") as properties:
        properties.write(f"log.retention.check.interval.ms={INTERVAL_MS}\n")
        properties.write(f"log.initial.task.delay.ms={INTERVAL_MS}\n")
    with peer:
        yield peer


@pytest.fixture(scope="session")
def quick_broker(tmp_path_factory):
    """A broker that moves records to segments at once, and looks for old ones often."""
    settings: dict[str, dict[str, object]] = {
        "lane": {"roll_after_ms": INTERVAL_MS},
        "jobs": {"retention_interval_ms": INTERVAL_MS},
    }
    with BrokerServer(tmp_path_factory.mktemp("quick"), **settings) as server:
        yield server


@pytest.fixture(params=["freshet", pytest.param("kafka", marks=pytest.mark.full)])
def bootstrap(request):
    """Where a server is whose newest records are in memory and in lanes."""
    name = {"freshet": "broker", "kafka": "kafka"}[request.param]
    return request.getfixturevalue(name).bootstrap


@pytest.fixture(params=["freshet", pytest.param("kafka", marks=pytest.mark.full)])
def quick_bootstrap(request):
    """Where a server is that soon drops what its topic's retention does not keep."""
    name = {"freshet": "quick_broker", "kafka": "kafka"}[request.param]
    return request.getfixturevalue(name).bootstrap


@pytest.fixture(scope="session")
def java():
    """Kafka's own client."""
    with Java() as library:
        yield library


@pytest.fixture
def library(request):
    """The library whose name is the parameter."""
    if request.param == "java":
        return request.getfixturevalue("java")
    python = {"librdkafka": Librdkafka, "kafka-python": KafkaPython, "aiokafka": Aiokafka}
    return python[request.param]() if request.param in python else programs()[request.param]
