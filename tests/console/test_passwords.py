"""Passwords are set anew by mail, and changed by a person who knows the current one."""

import re
from datetime import timedelta

import pytest
from django.core import mail
from django.db import connection
from django.test.utils import CaptureQueriesContext

from console.base.accounts.models import PasswordReset, User
from console.base.accounts.reset_tokens import reset_tokens
from console.base.accounts.services.address_mails import MAILS_MAX
from console.base.common.conf import config
from console.base.common.models import AuditEntry
from console.base.common.tenancy import organization_scope
from tests.console.browsers import Browser, signed_in
from tests.console.cases import assert_problem
from tests.console.clients import ApiClient
from tests.console.factories import PASSWORD, make_user
from tests.console.outbox import run_outbox

NEW = "staple battery horse"


@pytest.fixture
def anybody(db):
    return ApiClient()


def request_token(client, user):
    """Requests the mail and has a worker send it; returns the token in it."""
    assert client.post("/password-reset", {"email": user.email}).status_code == 204
    run_outbox()
    return re.findall(r"/password-reset#(\S+)", str(mail.outbox[-1].body))[0]


def set_password(client, token, password=NEW):
    return client.post("/password-reset/confirm", {"token": token, "password": password})


def actions(tenant):
    with organization_scope(tenant.id):
        return list(AuditEntry.objects.order_by("created_at").values_list("action", flat=True))


def test_the_mail_sets_a_new_password_and_ends_every_session(anybody, tenant):
    before = signed_in(tenant.owner)
    response = set_password(anybody, request_token(anybody, tenant.owner))
    assert response.status_code == 204, response.content
    assert before.user_id is None
    assert_problem(before.get("/sessions"), 401, "not_authenticated")
    assert_problem(Browser().sign_in(tenant.owner), 401, "invalid_credentials")
    assert Browser().sign_in(tenant.owner, NEW).status_code == 200
    assert "user.reset_password" in actions(tenant)
    run_outbox()
    assert mail.outbox[-1].subject == "Your password was changed"


def test_a_token_is_good_once(anybody, tenant):
    token = request_token(anybody, tenant.owner)
    assert set_password(anybody, token).status_code == 204
    assert_problem(set_password(anybody, token, PASSWORD), 422, "reset_token_invalid")
    assert Browser().sign_in(tenant.owner, NEW).status_code == 200


def test_of_two_tokens_the_second_dies_with_the_first(anybody, tenant):
    first, second = request_token(anybody, tenant.owner), request_token(anybody, tenant.owner)
    assert set_password(anybody, second).status_code == 204
    assert_problem(set_password(anybody, first, PASSWORD), 422, "reset_token_invalid")


def test_a_token_dies_with_a_sign_in_and_with_another_password(anybody, tenant):
    token = request_token(anybody, tenant.owner)
    browser = signed_in(tenant.owner)
    assert_problem(set_password(anybody, token), 422, "reset_token_invalid")
    token = request_token(anybody, tenant.owner)
    body = {"current_password": PASSWORD, "new_password": NEW}
    assert browser.post("/session/password", body).status_code == 204
    assert_problem(set_password(anybody, token), 422, "reset_token_invalid")


def test_a_token_is_good_for_an_hour(anybody, tenant, monkeypatch):
    token = request_token(anybody, tenant.owner)
    now = reset_tokens._now
    monkeypatch.setattr(reset_tokens, "_now", lambda: now() + timedelta(minutes=61))
    assert_problem(set_password(anybody, token), 422, "reset_token_invalid")
    monkeypatch.setattr(reset_tokens, "_now", lambda: now() + timedelta(minutes=59))
    assert set_password(anybody, token).status_code == 204


def test_a_token_is_of_one_user(anybody, tenant, other_tenant):
    _, _, proof = request_token(anybody, tenant.owner).partition(".")
    for token in (f"{other_tenant.owner.pk}.{proof}", proof, tenant.owner.pk, "."):
        assert_problem(set_password(anybody, token), 422, "reset_token_invalid")


def test_a_weak_password_is_refused_and_the_token_is_still_good(anybody, tenant):
    token = request_token(anybody, tenant.owner)
    document = assert_problem(set_password(anybody, token, "short"), 422, "validation_failed")
    assert document["errors"][0]["pointer"] == "/password"
    assert set_password(anybody, token).status_code == 204


def test_a_reset_does_not_reveal_whether_there_is_an_account(anybody, tenant):
    """Neither by the answer, nor by the time that it takes: the statements are the same."""
    statements = []
    for email in (tenant.owner.email, "nobody@acme.example"):
        with CaptureQueriesContext(connection) as queries:
            response = anybody.post("/password-reset", {"email": email})
        assert (response.status_code, response.content) == (204, b"")
        statements.append([query["sql"].split(" ")[0] for query in queries])
    assert statements[0] == statements[1]
    run_outbox()
    assert [message.to for message in mail.outbox] == [[tenant.owner.email]]
    assert not PasswordReset.objects.exists()


def test_who_may_not_sign_in_gets_no_mail(anybody, tenant):
    User.objects.update(is_active=False)
    anybody.post("/password-reset", {"email": tenant.owner.email})
    run_outbox()
    assert mail.outbox == []


def test_mails_of_an_address_and_of_an_account_are_limited(anybody, tenant, monkeypatch):
    limit = config().limits.password_resets_per_address
    for _ in range(limit):
        response = anybody.post("/password-reset", {"email": tenant.owner.email})
        assert response.status_code == 204
    response = anybody.post("/password-reset", {"email": tenant.owner.email})
    assert_problem(response, 429, "too_many_requests")
    run_outbox()
    assert len(mail.outbox) == MAILS_MAX < limit


def test_a_password_is_changed_by_who_knows_it(tenant):
    browser, other = signed_in(tenant.owner), signed_in(tenant.owner)
    key = browser.client.cookies["freshet_session"].value
    body = {"current_password": PASSWORD, "new_password": NEW}
    assert browser.post("/session/password", body).status_code == 204
    assert browser.user_id == tenant.owner.pk
    assert browser.client.cookies["freshet_session"].value != key
    assert other.user_id is None
    # The answer to a request with the earlier key does not delete the new cookie.
    late = Browser()
    late.client.cookies["freshet_session"] = key
    response = late.get("/api-keys")
    assert response.status_code == 401
    assert "freshet_session" not in response.cookies
    assert "user.change_password" in actions(tenant)
    run_outbox()
    assert mail.outbox[-1].subject == "Your password was changed"
    assert Browser().sign_in(tenant.owner, NEW).status_code == 200


@pytest.mark.usefixtures("later")
def test_a_wrong_current_password_changes_nothing_and_makes_wait(tenant):
    browser = signed_in(tenant.owner)
    body = {"current_password": "wrong", "new_password": NEW}
    for _ in range(5):
        document = assert_problem(
            browser.post("/session/password", body), 422, "current_password_wrong"
        )
        assert document["errors"][0]["pointer"] == "/current_password"
    body["current_password"] = PASSWORD
    response = browser.post("/session/password", body)
    assert_problem(response, 429, "too_many_requests")
    # Wrong passwords at sign-in are counted separately.
    assert Browser().sign_in(tenant.owner).status_code == 200


def test_a_weak_new_password_is_refused(tenant):
    body = {"current_password": PASSWORD, "new_password": "1234567890"}
    response = signed_in(tenant.owner).post("/session/password", body)
    document = assert_problem(response, 422, "validation_failed")
    assert document["errors"][0]["pointer"] == "/new_password"


def test_a_password_is_a_matter_of_a_session(tenant):
    body = {"current_password": PASSWORD, "new_password": NEW}
    assert_problem(ApiClient(tenant.key).post("/session/password", body), 401, "not_authenticated")
    browser = signed_in(tenant.owner)
    browser.csrf_token = ""
    assert_problem(browser.post("/session/password", body), 403, "permission_denied")


def test_a_person_of_no_organization_has_a_password_too(anybody):
    user = make_user("alone@acme.example")
    assert set_password(anybody, request_token(anybody, user)).status_code == 204
    assert signed_in(user, password=NEW).user_id == user.pk
