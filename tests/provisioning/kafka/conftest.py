"""A broker with SASL, as the internal listener of a managed cluster has it."""

import uuid
from typing import Any

import pytest

from brokers import Broker
from provisioning.kafka import Access, Clients, Connection
from tests.provisioning.kafka.clients import create_topic

PASSWORD = "derived from the cell's secret"
MANAGED: dict[str, Any] = {
    "listener": {
        "kafka": "127.0.0.1:0",
        "metrics": "127.0.0.1:0",
        "sasl": ["PLAIN", "SCRAM-SHA-512"],
    },
    "security": {
        "super_users": ["User:__freshet"],
        "users": [{"name": "__freshet", "password": PASSWORD}],
        "allow_everyone_if_no_acl_found": False,
    },
}


@pytest.fixture(scope="session")
def managed_broker():
    """A broker that all tests share."""
    with Broker(**MANAGED) as broker:
        yield broker


@pytest.fixture
def access(managed_broker):
    """The super user's access to the broker."""
    return Access(Clients(), Connection(managed_broker.bootstrap, PASSWORD))


@pytest.fixture
def name():
    """A name that no other test has."""
    return f"name-{uuid.uuid4().hex[:12]}"


@pytest.fixture
def topic(access, name):
    """A topic of three partitions."""
    return create_topic(access, name, 3)
