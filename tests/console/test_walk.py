"""Every route, method and kind of actor: who may, who may not, and that foreign looks absent."""

import json
from contextlib import contextmanager
from datetime import timedelta

import pytest
from django.apps import apps

from console.base.accounts.models import ApiKey
from console.base.common import rates
from console.base.common.actor import GRANTS, Permission, Role
from console.base.common.clock import now
from console.base.common.tenancy import organization_scope
from tests.console.browsers import signed_in
from tests.console.cases import assert_problem
from tests.console.clients import ApiClient, content_of
from tests.console.factories import make_project, make_project_key, make_project_member
from tests.console.guards import without_row_security
from tests.console.scopes import rolled_back
from tests.console.walk.calls import call_route, client_of
from tests.console.walk.resolver import served_routes
from tests.console.walk.routes import OF_ANOTHER, WhoCalls, absent_parameters
from tests.console.walk.tables import ROUTES

METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")
# The roles of actors who have no role but in a project.
ROLES_IN_PROJECT = {
    WhoCalls.PROJECT_DEVELOPER: Role.DEVELOPER,
    WhoCalls.PROJECT_VIEWER: Role.VIEWER,
    WhoCalls.PROJECT_MEMBER: Role.DEVELOPER,
    WhoCalls.OTHER_DEVELOPER: Role.DEVELOPER,
    WhoCalls.OTHER_VIEWER: Role.VIEWER,
}
ADDRESSES = sorted({route.path for route in ROUTES if route.path.startswith("/api/v1")})


@pytest.fixture
def querysets_alone(django_db_setup, django_db_blocker):
    """Switches row-level security off, so that only querysets separate the tenants."""
    with django_db_blocker.unblock(), without_row_security():
        yield


def client_as(who, tenant, other_tenant):
    """Returns the client of an actor, which has a key, or a session for `PROJECT_MEMBER`."""
    if who is WhoCalls.PROJECT_MEMBER:
        return signed_in(make_project_member(tenant, tenant.project, Role.DEVELOPER).user)
    if who in ROLES_IN_PROJECT:
        project = make_project(tenant) if who in OF_ANOTHER else tenant.project
        return ApiClient(make_project_key(tenant, project, ROLES_IN_PROJECT[who]))
    return ApiClient(key_of(who, tenant, other_tenant))


def key_of(who, tenant, other_tenant):
    match who:
        case WhoCalls.ANONYMOUS:
            return None
        case WhoCalls.OTHER_TENANT:
            return other_tenant.key
        case WhoCalls.VIEWER:
            return tenant.keys[Role.VIEWER]
        case _:
            return tenant.keys[Role.ADMIN]


def spoil_key(who, tenant):
    """Revokes or expires the administrator's key, if the actor is to have such a key."""
    change = {
        WhoCalls.REVOKED: {"revoked_at": now()},
        WhoCalls.EXPIRED: {"expires_at": now() - timedelta(seconds=1)},
    }.get(who)
    if change:
        with organization_scope(tenant.id):
            ApiKey.objects.filter(role=Role.ADMIN).update(**change)


def check_answer(route, who, response, tenant):
    """Asserts that a response is what the actor may expect."""
    if route.session:
        assert_problem(response, 401, "not_authenticated")
    elif route.permission is None:
        assert response.status_code in route.succeeds, response.content
        assert tenant.id.encode() not in response.content
    elif who in {WhoCalls.ANONYMOUS, WhoCalls.REVOKED, WhoCalls.EXPIRED}:
        assert_problem(response, 401, "not_authenticated")
    elif who in ROLES_IN_PROJECT:
        check_in_project(route, who, response)
    elif who is WhoCalls.VIEWER and route.permission not in GRANTS[Role.VIEWER]:
        assert_problem(response, 403, "permission_denied")
    elif who is WhoCalls.OTHER_TENANT and route.names_something:
        assert_problem(response, 404, "not_found")
    else:
        assert response.status_code in route.succeeds, response.content


def check_in_project(route, who, response):
    """Asserts that a response is what an actor with only a role in a project may expect."""
    granted = GRANTS[ROLES_IN_PROJECT[who]]
    if route.permission is Permission.BELONG:
        assert response.status_code in route.succeeds, response.content
    elif route.hidden:
        assert_problem(response, 404, "not_found")
    elif not route.asks_the_project or route.permission not in granted:
        assert_problem(response, 403, "permission_denied")
    elif who in OF_ANOTHER and route.names_something:
        assert_problem(response, 404, "not_found")
    elif who in OF_ANOTHER and route.permission is not Permission.READ:
        assert_problem(response, route.elsewhere)
    else:
        assert response.status_code in route.succeeds, response.content


@pytest.mark.parametrize("route", ROUTES, ids=lambda route: route.name)
def test_walk(route, tenant, other_tenant, subtests):
    """Calls a route as every actor, each of which finds database and cell unchanged."""
    actors = iter([who for who in WhoCalls if has_a_meaning(route, who)])
    while (who := next(actors, None)) is not None:
        with uncounted():
            parameters = route.parameters(tenant)
            while who is not None:
                # A change of the cell cannot be rolled back: after it the resources are made again.
                spent = route.method != "GET"
                with subtests.test(who), uncounted():
                    response = call_as(route, who, parameters, tenant, other_tenant)
                    spent = spent and response.status_code < 400
                who = None if spent else next(actors, None)


def has_a_meaning(route, who):
    """Returns whether to call a route as an actor.

    A route without a permission is not called with a session, which may mean something else there.
    """
    return route.permission is not None or who is not WhoCalls.PROJECT_MEMBER


@contextmanager
def uncounted():
    """Rolls the database back at the end of the block, and resets the counts of requests."""
    rates.forget_rates()
    with rolled_back():
        yield


def call_as(route, who, parameters, tenant, other_tenant):
    """Calls a route as an actor, checks the response, and returns it."""
    client = client_as(who, tenant, other_tenant)
    spoil_key(who, tenant)
    response = call_route(route, client, parameters)
    check_answer(route, who, response, tenant)
    if route.permission and who is WhoCalls.OTHER_TENANT:
        check_foreign(route, response, parameters, tenant)
    elif route.permission and who in OF_ANOTHER and route.asks_the_project:
        check_of_another(route, client, response, parameters, tenant)
    return response


def check_foreign(route, response, parameters, tenant):
    """Asserts that resources of another organization look absent."""
    content = content_of(response)
    for name in [*names_of(tenant), *parameters.values()]:
        assert name.encode() not in content
    if route.names_something:
        absent = absent_parameters(parameters)
        expected = call_route(route, ApiClient(tenant.keys[Role.ADMIN]), absent)
        assert_problem(response, 404, "not_found")
        assert without_names(response, parameters) == without_names(expected, absent)


def check_of_another(route, client, response, parameters, tenant):
    """Asserts that resources of another project look absent.

    Row-level security does not help here, because the organization is the same.
    """
    content = content_of(response)
    names = [tenant.project.pk, *names_of(tenant, "provisioning", "metering")]
    for name in [*names, *parameters.values()]:
        assert name.encode() not in content
    if route.names_something:
        absent = absent_parameters(parameters)
        expected = call_route(route, client, absent)
        assert expected.status_code in {403, 404}
        assert without_names(response, parameters) == without_names(expected, absent)


@pytest.mark.parametrize(
    "route", [route for route in ROUTES if route.permission], ids=lambda route: route.name
)
def test_querysets_alone_keep_what_is_foreign(querysets_alone, route, tenant, other_tenant):
    """Querysets alone suffice; `test_walk` has row-level security as well."""
    parameters = route.parameters(tenant)
    foreign = call_route(route, ApiClient(other_tenant.key), parameters)
    check_foreign(route, foreign, parameters, tenant)


def names_of(tenant, *applications):
    """Returns the ids of all rows of the tenant, or of those in some applications' tables."""
    names = [] if applications else [tenant.id, tenant.owner.pk]
    with organization_scope(tenant.id):
        for model in apps.get_models():
            if applications and model._meta.app_label not in applications:
                continue
            if any(field.attname == "organization_id" for field in model._meta.fields):
                rows = model._base_manager.filter(organization_id=tenant.id)
                names += [str(pk) for pk in rows.values_list("pk", flat=True)]
    assert applications or len(names) > len(Role)
    return names


def without_names(response, parameters):
    """Returns status and body without what must differ: the request's id and names in the path."""
    text = json.dumps({**response.json(), "request_id": ""})
    for value in parameters.values():
        text = text.replace(value, "…")
    return response.status_code, text


def test_every_served_route_is_known():
    served = {
        f"{method} {address}" for address, methods in served_routes().items() for method in methods
    }
    assert served == {route.name for route in ROUTES}


@pytest.mark.parametrize("address", ADDRESSES)
def test_other_methods_are_refused(address, tenant):
    routes = [route for route in ROUTES if route.path == address]
    client = client_of(routes[0], tenant)
    parameters = routes[0].parameters(tenant)
    path = routes[0].address(parameters).removeprefix("/api/v1")
    for method in (*METHODS, "OPTIONS"):
        if method not in {route.method for route in routes}:
            assert_problem(client.request(method, path, {}), 405, "method_not_allowed")


@pytest.mark.parametrize(
    "secret",
    [
        "",
        "x",
        "fk_",
        "fk_a_b",
        "fk_aaaaaaaaaaaaaaaaaaaa_aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
        "fk_" + "a" * 20 + "_" + "é" * 32,
        "\x00",
    ],
)
def test_what_is_no_key_is_refused(tenant, secret):
    assert_problem(ApiClient(secret).get("/api-keys"), 401, "not_authenticated")


def test_another_secret_of_a_real_key_is_refused(tenant):
    wrong = tenant.key[:-1] + ("a" if tenant.key[-1] != "a" else "b")
    assert_problem(ApiClient(wrong).get("/api-keys"), 401, "not_authenticated")


def test_another_scheme_is_refused(tenant):
    response = ApiClient().get("/api-keys", headers={"Authorization": f"Basic {tenant.key}"})
    assert_problem(response, 401, "not_authenticated")
    assert response["WWW-Authenticate"].startswith("Bearer")
