"""Every change leaves an audit entry: tests every route in `walk/` whose method is not GET.

An entry has the old and the new value of what was changed, and never a secret.
"""

import json

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
    "POST /api/v1/session/link",
    "POST /api/v1/signup/verification",
}
CHANGING = [route for route in ROUTES if route.method != "GET" and route.path.startswith("/api/v1")]


# Routes that change a value and are no PATCH and no PUT.
ALSO_CHANGE_VALUES = {
    "POST /api/v1/clusters/<cluster_id>/topics/<name>/partitions",
    "POST /api/v1/staff/limit-requests/<id>:grant",
}
CHANGING_VALUES = [
    route
    for route in CHANGING
    if (route.method in {"PATCH", "PUT"} or route.name in ALSO_CHANGE_VALUES)
    and min(route.succeeds) < 400
]
# The members of requests and answers that are secrets, or have some in them.
SECRET = {
    *("password", "current_password", "new_password", "secret", "key", "token", "code"),
    *("otpauth_uri", "recovery_codes"),
}
# Shorter texts are in other words by chance.
SECRET_CHARS_MIN = 6
GIVE_SECRETS = {
    "POST /api/v1/api-keys",
    "POST /api/v1/api-keys/<id>:rotate",
    "POST /api/v1/clusters/<cluster_id>/credentials",
    "POST /api/v1/clusters/<cluster_id>/credentials/<id>:rotate",
    "POST /api/v1/signup",
}


def all_entries():
    """Returns all audit entries of all organizations by id."""
    with system_scope():
        return {entry.pk: entry for entry in AuditEntry.objects.all()}


def secrets_in(value, *, secret=False):
    """Yields the texts of JSON that are secrets."""
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from secrets_in(inner, secret=secret or name in SECRET)
    elif isinstance(value, list):
        for inner in value:
            yield from secrets_in(inner, secret=secret)
    elif secret and isinstance(value, str) and len(value) >= SECRET_CHARS_MIN:
        yield value


def values_changed(detail):
    """Yields the old and the new value of each change in an entry's detail."""
    if isinstance(detail, dict):
        if set(detail) == {"from", "to"}:
            yield detail["from"], detail["to"]
        else:
            for inner in detail.values():
                yield from values_changed(inner)


@pytest.mark.parametrize("route", CHANGING, ids=lambda route: route.name)
def test_a_change_leaves_an_entry(route, tenant):
    owner = client_of(route, tenant)
    parameters = route.parameters(tenant)
    before = all_entries()
    response = call_route(route, owner, parameters)
    assert response.status_code in route.succeeds, response.content
    added = {pk: entry for pk, entry in all_entries().items() if pk not in before}
    if response.status_code >= 400 or route.name in CHANGE_NOTHING:
        assert not added
    else:
        assert added, f"{route.name} changed something and left no audit entry"

    answer = json.loads(response.content) if response.content else None
    secrets = {*secrets_in(dict(route.body or {})), *secrets_in(answer)}
    if route.name in GIVE_SECRETS:
        assert secrets
    for entry in added.values():
        written = json.dumps([entry.target_id, entry.detail])
        assert [secret for secret in secrets if secret in written] == []


@pytest.mark.parametrize("route", CHANGING_VALUES, ids=lambda route: route.name)
def test_a_change_of_a_value_has_the_old_and_the_new_one(route, tenant):
    owner = client_of(route, tenant)
    parameters = route.parameters(tenant)
    before = all_entries()
    response = call_route(route, owner, parameters)
    assert response.status_code in route.succeeds, response.content
    added = [entry for pk, entry in all_entries().items() if pk not in before]
    changed = [pair for entry in added for pair in values_changed(entry.detail)]
    assert changed, [entry.detail for entry in added]
    assert [pair for pair in changed if pair[0] == pair[1]] == []


def test_the_exceptions_are_routes():
    names = {route.name for route in CHANGING}
    assert names >= CHANGE_NOTHING | ALSO_CHANGE_VALUES | GIVE_SECRETS
