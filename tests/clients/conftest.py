"""Brokers that tests share, and names of their own."""

import uuid

import pytest

from tests.clients.servers import BrokerServer


@pytest.fixture(scope="session")
def broker(tmp_path_factory):
    """A broker without authentication."""
    with BrokerServer(tmp_path_factory.mktemp("plain")) as server:
        yield server


@pytest.fixture
def topic():
    """A topic name that no other test has."""
    return f"topic-{uuid.uuid4().hex[:12]}"


@pytest.fixture
def group():
    """A group name that no other test has."""
    return f"group-{uuid.uuid4().hex[:12]}"
