"""Whoever changes something is in the audit log: every route of the walk that is no GET."""

import pytest

from console.base.common.models import AuditEntry
from console.base.common.tenancy import system_scope
from tests.console.walk.calls import call, client_of
from tests.console.walk.tables import ROUTES

# Routes whose success in the walk changes nothing that is anybody's.
CHANGE_NOTHING = {
    # Nobody is signed in.
    "DELETE /api/v1/session",
    # There is no such account, so no mail.
    "POST /api/v1/password-reset",
    "POST /api/v1/signup/verification",
}
CHANGING = [route for route in ROUTES if route.method != "GET" and route.path.startswith("/api/v1")]


def newest():
    """Ids of all entries, whosever they are."""
    with system_scope():
        return set(AuditEntry.objects.values_list("pk", flat=True))


@pytest.mark.parametrize("route", CHANGING, ids=lambda route: route.name)
def test_a_change_leaves_an_entry(route, tenant):
    owner = client_of(route, tenant)
    parameters = route.parameters(tenant)
    before = newest()
    response = call(route, owner, parameters)
    assert response.status_code in route.succeeds, response.content
    added = newest() - before
    if response.status_code >= 400 or route.name in CHANGE_NOTHING:
        assert not added
    else:
        assert added, f"{route.name} changed something and left no audit entry"


def test_the_exceptions_are_routes():
    assert {route.name for route in CHANGING} >= CHANGE_NOTHING
