"""The OpenAPI file has every route of the API, and the limits of pages that it names hold."""

import json

import pytest

from tests.console.cases import assert_problem
from tests.console.test_openapi import FILE
from tests.console.walk.calls import call_route, client_of
from tests.console.walk.resolver import served_routes
from tests.console.walk.tables import ROUTES

DESCRIBED = json.loads(FILE.read_text())["paths"]
ROUTE_OF = {f"{route.method} {route.path}": route for route in ROUTES}


# What the console asks with, and no client of the API: its events say when to read again, and are
# what they are to the console of the same release alone.
# What Stripe alone sends is Stripe's own to describe.
NOT_DESCRIBED = {"GET /api/v1/watch", "POST /api/v1/webhooks/stripe"}


def described(path):
    """A path as the OpenAPI file writes it: `/api/v1/alerts/{id}`."""
    return path.replace("<", "{").replace(">", "}")


def limit_of(path):
    """The greatest `limit` of a list, by the OpenAPI file; None for what is no list."""
    parameters = DESCRIBED.get(described(path), {}).get("get", {}).get("parameters", ())
    limits = [p["schema"]["maximum"] for p in parameters if p["name"] == "limit"]
    return limits[0] if limits else None


LISTS = {
    route.path: maximum
    for route in ROUTES
    if route.method == "GET" and (maximum := limit_of(route.path)) is not None
}


def test_every_route_of_the_api_is_described():
    served = {
        f"{method} {described(path)}"
        for path, methods in served_routes().items()
        if path.startswith("/api/v1/")
        for method in methods
    }
    in_file = {f"{method.upper()} {path}" for path, item in DESCRIBED.items() for method in item}
    assert served - NOT_DESCRIBED == in_file
    assert served >= NOT_DESCRIBED


def test_lists_of_both_lengths_are_known():
    assert {200, 2000} <= set(LISTS.values())


@pytest.mark.parametrize("path", LISTS)
def test_a_page_may_be_as_long_as_the_file_says_and_no_longer(tenant, path):
    route, maximum = ROUTE_OF[f"GET {path}"], LISTS[path]
    client, parameters = client_of(route, tenant), route.parameters(tenant)
    address = route.address(parameters).removeprefix("/api/v1")
    assert call_route(route, client, parameters).status_code in route.succeeds
    longest = client.get(address, query={**route.query, "limit": maximum})
    assert longest.status_code in route.succeeds
    longer = client.get(address, query={**route.query, "limit": maximum + 1})
    document = assert_problem(longer, 422, "validation_failed")
    assert [error["pointer"] for error in document["errors"]] == ["?limit"]
