"""A broker as a process, in a folder of the test's own."""

import pytest

from tests.clients.servers import BrokerServer


@pytest.fixture
def server(tmp_path):
    """A broker that is not started yet."""
    return BrokerServer(tmp_path / "broker")
