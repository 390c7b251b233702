"""Schemathesis against the committed OpenAPI file, with another tenant's ids in every place.

Every operation gets what its description allows and what it does not: its examples, its boundaries,
then what Hypothesis makes of it, always the same. `FRESHET_FUZZ_EXAMPLES=<n>` asks for all
boundaries and n drawn examples of each operation; without it there are few of both.
"""

import os
import re
from contextlib import contextmanager

import pytest
from django.db import transaction

from console.base.accounts.models import User
from console.base.common import rates
from tests.console.browsers import signed_in
from tests.console.clients import ApiClient, content_of
from tests.console.fuzzing.cases import CHECKS, is_foreign, leaked, send, text_of, variants
from tests.console.fuzzing.described import document, files, labels, parameters_of
from tests.console.fuzzing.generation import cases_of
from tests.console.fuzzing.planted import NAMED, plant
from tests.console.guards import without_row_security
from tests.console.walk.tables import ROUTES

pytestmark = pytest.mark.full

EXAMPLES = int(os.environ.get("FRESHET_FUZZ_EXAMPLES", "0"))
# One boundary in so many is tried where nobody asks for all.
BOUNDARIES = 1 if EXAMPLES else 10
ROUTE_OF = {re.sub(r"<(\w+)>", r"{\1}", route.name): route for route in ROUTES}
# Files that a cluster's brokers write; it sleeps.
OF_BROKERS = {"/api/v1/clusters/{cluster_id}/topics/{name}/messages/stream"}
# What a part that is away answers; in these tests none is but the brokers of clusters that sleep.
AWAY = "cluster_starting"


@pytest.fixture(scope="module")
def world(django_db_setup, django_db_blocker):
    """Both tenants, for all operations: each request is taken back, and these at the end.

    Querysets alone guard: row-level security would hide what one forgets. The walk tries both.
    """
    del django_db_setup
    with (
        django_db_blocker.unblock(),
        without_row_security(),
        pytest.MonkeyPatch.context() as patch,
        transaction.atomic(),
    ):
        # Nobody is there to wake a cluster.
        patch.setattr("provisioning.clusters.services.brokers.WAKE_TIMEOUT_S", 0.0)
        rates.forget()
        own, foreign = plant("Acme"), plant("Globex")
        yield own, foreign, foreign.marks(), foreign.rows(), foreign.metadata()
        transaction.set_rollback(True)


@contextmanager
def taken_back():
    with transaction.atomic():
        try:
            yield
        finally:
            transaction.set_rollback(True)


def client_for(route, own):
    """The owner: a key, a session where only a session opens it, nobody where nobody need be."""
    if route.session:
        if route.staff:
            User.objects.filter(pk=own.tenant.owner.pk).update(is_staff=True)
        return signed_in(own.tenant.owner)
    return ApiClient(own.tenant.key if route.permission else None)


def check(case, response, route, world):
    """The answer is what the file says, and nothing of the other tenant shows or changes."""
    _, foreign, marks, rows, _ = world
    if response.status_code >= 500:
        assert (response.status_code, response.json()["code"]) == (503, AWAY)
    case.validate_response(response, checks=CHECKS)
    # Nobody here has sent anything with a key of theirs before.
    assert "idempotent-replayed" not in response.headers
    assert b"idempotency_" not in response.content
    if not route.staff:
        assert not leaked(response, marks)
        assert response.status_code >= 400 or not is_foreign(case, foreign)
        # What is refused is taken back with its transaction.
        assert case.method == "GET" or response.status_code >= 400 or foreign.rows() == rows


@pytest.mark.parametrize("label", labels())
def test_every_answer_is_as_described_and_nothing_of_another_tenant(world, label):
    own, foreign, *_ = world
    route = ROUTE_OF[label]
    with taken_back():
        client = client_for(route, own)
        for case in cases_of(label, boundaries=BOUNDARIES, drawn=EXAMPLES or 1):
            for variant in variants(case, own, foreign):
                rates.forget()
                try:
                    with taken_back():
                        response = send(variant, client)
                        check(variant, response, route, world)
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
    rates.forget()
    with taken_back():
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
    named = {
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
    assert {name for name in named if name.endswith("_id")} - NO_IDS <= NAMED <= named
    assert all(own.members[name] != foreign.members[name] for name in own.members)
    # Limits have the same names for everybody.
    listed = set(own.cursors) - {"/api/v1/limits"}
    assert listed >= {"/api/v1/api-keys", "/api/v1/audit-log", "/api/v1/projects"}
    assert all(own.cursors[path] != foreign.cursors[path] for path in listed)


# What is called so and names nothing of this service: Kafka's own, a tax number.
NO_IDS = {"transactional_id", "vat_id"}
