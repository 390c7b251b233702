"""A cell with a gateway and one cluster that runs, for tests that change neither."""

import pytest

from tests.gateway.cells import Cell, GatewayServer, KeeperStandIn


@pytest.fixture(scope="session")
def served(tmp_path_factory):
    """Cell, spec of a cluster, its keeper, and the gateway."""
    cell = Cell(tmp_path_factory.mktemp("cell"))
    spec = cell.add_cluster("cl_served")
    with KeeperStandIn(cell, spec) as keeper, GatewayServer(cell) as gateway:
        yield cell, spec, keeper, gateway


@pytest.fixture
def cell(tmp_path):
    """A cell of its own."""
    return Cell(tmp_path / "cell")
