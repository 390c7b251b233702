"""Every change leaves an audit entry: tests every route in `walk/` whose method is not GET."""

import pytest

from console.base.common.models import AuditEntry
from console.base.common.tenancy import system_scope
from tests.console.walk.calls import call_route, client_of
from tests.console.walk.tables import ROUTES

# Routes whose successful call here changes nothing of any organization.
CHANGE_NOTHING = {
    # The caller is not signed in.
    "DELETE /api/v1/session",
    # No account has the address, so no mail is sent.
    "POST /api/v1/password-reset",
    "POST /api/v1/signup/verification",
}
CHANGING = [route for route in ROUTES if route.method != "GET" and route.path.startswith("/api/v1")]


def all_entry_ids():
    """Returns the ids of all audit entries of all organizations."""
    with system_scope():
        return set(AuditEntry.objects.values_list("pk", flat=True))


@pytest.mark.parametrize("route", CHANGING, ids=lambda route: route.name)
def test_a_change_leaves_an_entry(route, tenant):
    owner = client_of(route, tenant)
    parameters = route.parameters(tenant)
    before = all_entry_ids()
    response = call_route(route, owner, parameters)
    assert response.status_code in route.succeeds, response.content
    added = all_entry_ids() - before
    if response.status_code >= 400 or route.name in CHANGE_NOTHING:
        assert not added
    else:
        assert added, f"{route.name} changed something and left no audit entry"


def test_the_exceptions_are_routes():
    assert {route.name for route in CHANGING} >= CHANGE_NOTHING
