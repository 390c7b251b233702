"""The console's session: cookie and CSRF token, who is signed in, in which organization."""

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from console.base.accounts.models import Membership
from console.base.common.actor import Role
from console.base.common.conf import config
from console.base.common.tenancy import organization_scope
from tests.console.cases import assert_problem
from tests.console.clients import ApiClient
from tests.console.factories import PASSWORD, make_user


@pytest.fixture
def browser(db):
    """A client that keeps cookies and checks CSRF tokens as a server does."""
    return ApiClient(client=Client(enforce_csrf_checks=True, raise_request_exception=False))


def sign_in(browser, user, password=PASSWORD):
    return browser.post("/session", {"email": user.email, "password": password})


@pytest.fixture
def signed_in(browser, tenant):
    """The browser of the tenant's owner, and the headers that its changes need."""
    assert sign_in(browser, tenant.owner).status_code == 200
    return browser, {"X-CSRFToken": browser.get("/session").json()["csrf_token"]}


def test_nobody_is_signed_in_at_first(browser):
    session = browser.get("/session").json()
    assert (session["user"], session["organizations"], session["organization"]) == (None, [], None)


def test_signing_in_shows_user_and_organization(browser, tenant):
    response = sign_in(browser, tenant.owner)
    assert response.status_code == 200
    shown = browser.get("/session").json()
    assert shown["user"]["id"] == tenant.owner.pk
    assert shown["organization"]["id"] == tenant.id
    assert shown["organization"]["role"] == Role.OWNER
    assert browser.get("/api-keys").status_code == 200


def test_the_cookie_is_out_of_reach_of_scripts(browser, tenant):
    cookie = sign_in(browser, tenant.owner).cookies["freshet_session"]
    assert cookie["httponly"]
    assert cookie["samesite"] == "Lax"


def test_a_change_needs_the_csrf_token(signed_in):
    browser, headers = signed_in
    assert_problem(browser.post("/api-keys", {"name": "x"}), 403, "permission_denied")
    assert browser.post("/api-keys", {"name": "x"}, headers=headers).status_code == 201


@pytest.mark.parametrize("password", ["", "wrong"])
def test_a_wrong_password_is_refused(browser, tenant, password):
    response = sign_in(browser, tenant.owner, password)
    assert response.status_code in {401, 422}
    assert browser.get("/session").json()["user"] is None


def test_an_unknown_address_looks_like_a_wrong_password(browser, tenant):
    wrong = assert_problem(sign_in(browser, tenant.owner, "wrong"), 401, "invalid_credentials")
    body = {"email": "nobody@acme.example", "password": "wrong"}
    unknown = assert_problem(browser.post("/session", body), 401, "invalid_credentials")
    assert {**wrong, "request_id": ""} == {**unknown, "request_id": ""}


def test_failed_sign_ins_of_an_address_are_limited(browser, tenant):
    limit = config().limits.signins_failed_per_address
    # Each attempt names another account: so many of one account would have to wait anyway.
    for number in range(limit):
        body = {"email": f"nobody{number}@acme.example", "password": "wrong"}
        assert browser.post("/session", body).status_code == 401
    response = sign_in(browser, tenant.owner)
    assert_problem(response, 429, "too_many_requests")
    assert int(response["Retry-After"]) > 0


def test_signing_in_replaces_the_session_of_somebody_else(browser, tenant, other_tenant):
    sign_in(browser, tenant.owner)
    before = browser.client.cookies["freshet_session"].value
    sign_in(browser, other_tenant.owner)
    assert browser.client.cookies["freshet_session"].value != before
    assert browser.get("/session").json()["organization"]["id"] == other_tenant.id


def test_signing_out_ends_the_session(signed_in):
    browser, headers = signed_in
    old = browser.client.cookies["freshet_session"].value
    assert_problem(browser.delete("/session"), 403, "permission_denied")
    response = browser.delete("/session", headers=headers)
    assert response.status_code == 204
    assert response.cookies["freshet_session"].value == "", "the browser forgets it"
    assert browser.get("/session").json()["user"] is None
    browser.client.cookies["freshet_session"] = old
    assert_problem(browser.get("/api-keys"), 401, "not_authenticated")


def test_a_user_works_in_one_of_their_organizations(signed_in, tenant, other_tenant):
    browser, headers = signed_in
    target = {"organization_id": other_tenant.id}
    assert_problem(browser.patch("/session", target, headers=headers), 404, "not_found")
    with organization_scope(other_tenant.id):
        Membership.objects.create(
            organization=other_tenant.organization, user=tenant.owner, role=Role.VIEWER
        )
    shown = browser.patch("/session", target, headers=headers)
    assert shown.status_code == 200
    assert shown.json()["organization"]["id"] == other_tenant.id
    assert browser.get("/organizations/current").json()["id"] == other_tenant.id
    refused = browser.post("/api-keys", {"name": "x"}, headers=headers)
    assert_problem(refused, 403, "permission_denied")


def test_a_member_who_has_left_is_out_at_once(signed_in, tenant):
    browser, _ = signed_in
    with organization_scope(tenant.id):
        Membership.objects.all().delete()
    assert_problem(browser.get("/api-keys"), 401, "not_authenticated")


def test_an_inactive_user_does_not_get_in(browser, tenant):
    user = make_user("gone@acme.example")
    user.is_active = False
    user.save()
    assert_problem(sign_in(browser, user), 401, "invalid_credentials")


def test_another_page_cannot_sign_somebody_in(browser, tenant):
    form = browser.client.post(
        "/api/v1/session", {"email": tenant.owner.email, "password": PASSWORD}
    )
    assert_problem(form, 415, "unsupported_media_type")


def test_an_unknown_address_does_the_same_as_a_known_one(browser, tenant):
    """The statements are the same, and a password is hashed for an unknown address too."""
    statements = []
    for email in (tenant.owner.email, "nobody@acme.example"):
        with CaptureQueriesContext(connection) as queries:
            response = browser.post("/session", {"email": email, "password": "wrong"})
        assert_problem(response, 401, "invalid_credentials")
        statements.append([query["sql"].split(" ")[0] for query in queries])
    assert statements[0] == statements[1]
