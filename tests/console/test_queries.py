"""The number of SQL statements of each GET is the committed baseline."""

import json

import pytest

from tests.console.queries import BASELINES, assert_baseline, count_queries
from tests.console.walk.calls import call_route, client_of
from tests.console.walk.tables import ROUTES

READS = {
    route.path.removeprefix("/api/v1"): route
    for route in ROUTES
    if route.method == "GET" and route.path.startswith("/api/v1")
}


@pytest.mark.parametrize("address", READS)
def test_a_read_costs_as_many_queries_as_it_did(address, tenant):
    """A change of the number shows in the diff of the baseline, where a person judges it."""
    route = READS[address]
    parameters = route.parameters(tenant)
    client = client_of(route, tenant)

    def read():
        assert call_route(route, client, parameters).status_code in route.succeeds

    assert_baseline(address, count_queries(read))


def test_every_baseline_is_of_a_route():
    """The test above finds a route without a baseline; this one a baseline without a route."""
    assert set(json.loads(BASELINES.read_text())) == set(READS)
