"""What each GET costs PostgreSQL, as a committed baseline."""

import json

import pytest

from tests.console.queries import BASELINES, assert_baseline, count_queries
from tests.console.walk.calls import call, client_of
from tests.console.walk.tables import ROUTES

READS = {
    route.path.removeprefix("/api/v1"): route
    for route in ROUTES
    if route.method == "GET" and route.path.startswith("/api/v1")
}


@pytest.mark.parametrize("address", READS)
def test_a_read_costs_as_many_queries_as_it_did(address, tenant):
    """A number that grows from one change to the next is looked at."""
    route = READS[address]
    parameters = route.parameters(tenant)
    client = client_of(route, tenant)

    def ask():
        assert call(route, client, parameters).status_code in route.succeeds

    assert_baseline(address, count_queries(ask))


def test_every_baseline_is_of_a_route():
    """With the test above, which walks every GET: none is missing, and none is left behind."""
    assert set(json.loads(BASELINES.read_text())) == set(READS)
