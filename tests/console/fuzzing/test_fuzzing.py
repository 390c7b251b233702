"""Schemathesis against the committed OpenAPI file, with another tenant's ids in every place.

Every operation gets requests that its description allows and requests that it does not: from its
examples, its boundary values, and random ones, the same in each run.
`FRESHET_FUZZ_EXAMPLES=<n>` asks for all boundary values and n random examples of each operation;
without it there are few of both.
"""

import os
import re

import pytest

from console.base.accounts.models import User
from console.base.common import rates
from tests.console.browsers import signed_in
from tests.console.clients import ApiClient, content_of
from tests.console.fuzzing.cases import (
    CHECKS,
    is_foreign,
    leaked_marks,
    send_case,
    text_of,
    variants,
)
from tests.console.fuzzing.described import document, files, labels, parameters_of
from tests.console.fuzzing.generation import cases_of
from tests.console.fuzzing.planted import NAMED, plant_tenant
from tests.console.guards import without_row_security
from tests.console.scopes import rolled_back
from tests.console.walk.tables import ROUTES

pytestmark = pytest.mark.full

EXAMPLES = int(os.environ.get("FRESHET_FUZZ_EXAMPLES", "0"))
# Every tenth boundary value is tried, unless all are asked for.
BOUNDARIES = 1 if EXAMPLES else 10
ROUTE_OF = {re.sub(r"<(\w+)>", r"{\1}", route.name): route for route in ROUTES}
# Files that a cluster's brokers write; the clusters here are asleep.
OF_BROKERS = {"/api/v1/clusters/{cluster_id}/topics/{name}/messages/stream"}
# The code of the one 503 that is allowed: the brokers of a sleeping cluster do not answer.
AWAY = "cluster_starting"


@pytest.fixture(scope="module")
def world(django_db_setup, django_db_blocker):
    """Both tenants, made once for all operations and rolled back at the end.

    Row-level security is off, because it would hide a queryset that forgets the organization.
    `test_walk.py` has both guards.
    """
    with (
        django_db_blocker.unblock(),
        without_row_security(),
        pytest.MonkeyPatch.context() as patch,
        rolled_back(),
    ):
        # No keeper runs here that could wake a cluster.
        patch.setattr("provisioning.clusters.services.brokers.WAKE_TIMEOUT_S", 0.0)
        rates.forget_rates()
        own, foreign = plant_tenant("Acme"), plant_tenant("Globex")
        yield own, foreign, foreign.marks(), foreign.rows(), foreign.metadata()


def client_for(route, own):
    """Returns the owner's client: with a key, with a session where only that may call the route,
    or without a credential where the route needs none.
    """
    if route.session:
        if route.staff:
            User.objects.filter(pk=own.tenant.owner.pk).update(is_staff=True)
        return signed_in(own.tenant.owner)
    return ApiClient(own.tenant.key if route.permission else None)


def check_answer(case, response, route, world):
    """Asserts that an answer is as described, and shows and changes nothing of the other tenant."""
    _, foreign, marks, rows, _ = world
    if response.status_code >= 500:
        assert (response.status_code, response.json()["code"]) == (503, AWAY)
    case.validate_response(response, checks=CHECKS)
    # The caller has sent no request with an Idempotency-Key before.
    assert "idempotent-replayed" not in response.headers
    assert b"idempotency_" not in response.content
    if not route.staff:
        assert not leaked_marks(response, marks)
        assert response.status_code >= 400 or not is_foreign(case, foreign)
        # A refused request's transaction is rolled back, so only successes can change rows.
        assert case.method == "GET" or response.status_code >= 400 or foreign.rows() == rows


@pytest.mark.parametrize("label", labels())
def test_every_answer_is_as_described_and_nothing_of_another_tenant(world, label):
    own, foreign, *_ = world
    route = ROUTE_OF[label]
    with rolled_back():
        client = client_for(route, own)
        for case in cases_of(label, boundaries=BOUNDARIES, drawn=EXAMPLES or 1):
            for variant in variants(case, own, foreign):
                rates.forget_rates()
                try:
                    with rolled_back():
                        response = send_case(variant, client)
                        check_answer(variant, response, route, world)
                except Exception as error:
                    error.add_note(f"{label}\n{variant!r}"[:4000])
                    raise
                if variant.method != "GET":
                    own.mend()
    assert foreign.metadata() == world[-1]


@pytest.mark.parametrize("path", files())
def test_a_file_has_what_is_ones_own_and_nothing_of_another_tenant(world, path):
    own, _, marks, *_ = world
    address = path.removeprefix("/api/v1")
    for name, collection in parameters_of(path).items():
        address = address.replace(f"{{{name}}}", own.ids[collection])
    rates.forget_rates()
    with rolled_back():
        answer = ApiClient(own.tenant.key).get(address)
        assert answer.status_code == (409 if path in OF_BROKERS else 200)
        text = text_of(content_of(answer))
    assert path in OF_BROKERS or own.word in text or own.tenant.id in text
    assert {mark for mark in marks if mark in text} == set()


def test_every_id_in_an_address_has_one_of_each_tenant(world):
    own, foreign, *_ = world
    for path in document()["paths"]:
        for collection in parameters_of(path).values():
            assert own.ids[collection]
            assert own.ids[collection] != foreign.ids[collection]


def test_every_id_in_a_query_or_body_has_one_of_each_tenant(world):
    own, foreign, *_ = world
    schemas = document()["components"]["schemas"]
    members = {
        member
        for name in schemas
        if name.endswith("Request")
        for member in schemas[name].get("properties", {})
    } | {
        parameter["name"]
        for item in document()["paths"].values()
        for operation in item.values()
        for parameter in operation.get("parameters", [])
        if parameter["in"] == "query"
    }
    assert {name for name in members if name.endswith("_id")} - NO_IDS <= NAMED <= members
    assert all(own.members[name] != foreign.members[name] for name in own.members)
    # Limits have the same names for everybody.
    listed = set(own.cursors) - {"/api/v1/limits"}
    assert listed >= {"/api/v1/api-keys", "/api/v1/audit-log", "/api/v1/projects"}
    assert all(own.cursors[path] != foreign.cursors[path] for path in listed)


# Members that end in `_id` and name no resource of this service: Kafka's own, and a tax number.
NO_IDS = {"transactional_id", "vat_id"}
