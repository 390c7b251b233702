"""The same answers through a gateway, which changes some of them and passes the others on."""

import pytest

from tests.gateway.cells import PASSWORD, USER, Cell, GatewayServer, KeeperStandIn
from tests.protocol.apis.table import can_fail, check_failure, check_success
from tests.protocol.running import NOBODY, served_versions
from tests.protocol.world import Account, Place, World

# What a gateway answers itself, and what names brokers: their addresses become its own. With
# Produce and Fetch, which it passes on as they are.
NAMES = {
    *("SaslHandshake", "SaslAuthenticate", "ApiVersions", "Metadata", "DescribeCluster"),
    *("FindCoordinator", "DescribeTopicPartitions", "Produce", "Fetch"),
}
SERVED = [pair for pair in served_versions() if pair[0] in NAMES]


@pytest.fixture(scope="module")
def world(tmp_path_factory, codec):
    """A cluster behind a gateway, with content."""
    cell = Cell(tmp_path_factory.mktemp("cell"))
    spec = cell.add_cluster("cl_protocol")
    cell.add_user(spec.id, NOBODY.user, NOBODY.password)
    with KeeperStandIn(cell, spec), GatewayServer(cell):
        address = f"127.0.0.1:{spec.ports[0]}"
        made = World(Place(address, codec, Account(USER, PASSWORD), NOBODY))
        made.prepare()
        yield made
        made.close()


@pytest.mark.parametrize(("name", "version"), SERVED)
def test_what_succeeds_has_content(world, name, version):
    check_success(world, name, version)


@pytest.mark.parametrize(("name", "version"), [pair for pair in SERVED if can_fail(*pair)])
def test_what_fails_says_why(world, name, version):
    check_failure(world, name, version)
