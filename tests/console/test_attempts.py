"""Guessing a password: many addresses do not make it fast, and it does not keep the owner out."""

import re

import pytest
from django.core import mail
from django.test import Client

from console.base.accounts.models import FailedAttempts
from console.base.accounts.services import attempts, purge_attempts
from console.base.common.conf import config
from tests.console.browsers import Browser, signed_in
from tests.console.cases import assert_problem
from tests.console.clients import ApiClient
from tests.console.factories import PASSWORD
from tests.console.outbox import run_outbox

WRONG = "a wrong password"
NEW = "staple battery horse"
FREE = attempts.OVERALL.free
# The clock moves only when a test says so, so that a slow machine does not change the waits.
pytestmark = pytest.mark.usefixtures("later")


def sign_in_from(number, email, password, **body):
    """Signs in from the address 192.0.2.`number`; returns the response."""
    client = Client(raise_request_exception=False, REMOTE_ADDR=f"192.0.2.{number}")
    body = {"email": email, "password": password, **body}
    return client.post("/api/v1/session", body, content_type="application/json")


def guess_from_many(email, first=100):
    """Has wrong passwords from so many networks that the account itself begins to wait."""
    for number in range(FREE):
        response = sign_in_from(first + number // 4, email, WRONG)
        assert_problem(response, 401, "invalid_credentials")


@pytest.mark.parametrize(
    ("failures", "seconds"),
    [(0, 0), (4, 0), (5, 5), (6, 10), (7, 20), (12, 640), (13, 900), (1_000_000, 900)],
)
def test_the_wait_of_a_network_doubles_up_to_a_quarter_of_an_hour(failures, seconds):
    assert attempts.STRONG.wait_s(failures) == seconds


@pytest.mark.parametrize(
    ("failures", "seconds"), [(0, 0), (49, 0), (50, 5), (52, 20), (53, 30), (1_000_000, 30)]
)
def test_the_wait_that_others_cause_is_half_a_minute_at_most(failures, seconds):
    assert attempts.OVERALL.wait_s(failures) == seconds


@pytest.mark.parametrize("known", [True, False])
def test_guesses_from_one_network_make_it_wait_and_no_other(tenant, later, known):
    email = tenant.owner.email if known else "nobody@acme.example"
    for _ in range(5):
        assert_problem(sign_in_from(1, email, WRONG), 401, "invalid_credentials")
    response = sign_in_from(1, email, PASSWORD)
    document = assert_problem(response, 429, "too_many_requests")
    assert document["quota"] == {"name": "wrong_attempts_in_a_row", "limit": 5, "used": 5}
    assert response["Retry-After"] == "5"
    assert sign_in_from(2, email, PASSWORD).status_code == (200 if known else 401)
    later(seconds=5)
    assert_problem(sign_in_from(1, email, WRONG), 401, "invalid_credentials")
    response = sign_in_from(1, email, WRONG)
    assert_problem(response, 429, "too_many_requests")
    assert response["Retry-After"] == "10"


@pytest.mark.parametrize("known", [True, False])
def test_guesses_from_many_networks_are_bounded(tenant, later, known):
    email = tenant.owner.email if known else "nobody@acme.example"
    guess_from_many(email)
    looked_at = 0
    for second in range(120):
        # A network that did nothing wrong before, each time.
        response = sign_in_from(second, email, WRONG)
        assert response.status_code in {401, 429}
        looked_at += response.status_code == 401
        later(seconds=1)
    # Two a minute, and those before the wait has doubled to half a minute.
    assert looked_at <= 7


def test_the_owner_with_a_new_browser_waits_for_seconds(tenant, later):
    guess_from_many(tenant.owner.email)
    response = Browser().sign_in(tenant.owner)
    assert_problem(response, 429, "too_many_requests")
    assert int(response["Retry-After"]) <= attempts.OVERALL.max_s
    later(seconds=int(response["Retry-After"]))
    assert Browser().sign_in(tenant.owner).status_code == 200


def test_who_waited_gets_in_and_begins_anew(tenant, later):
    for _ in range(5):
        sign_in_from(1, tenant.owner.email, WRONG)
    later(seconds=5)
    assert sign_in_from(1, tenant.owner.email, PASSWORD).status_code == 200
    assert not FailedAttempts.objects.exists()


def sent_link():
    """Runs the outbox; returns the token of the newest mail's link to sign in by."""
    run_outbox()
    return re.findall(r"/signin#(\S+)", str(mail.outbox[-1].body))[0]


def test_a_mails_link_signs_in_without_a_wait(tenant):
    email = tenant.owner.email
    guess_from_many(email)
    assert ApiClient().post("/session/link", {"email": email}).status_code == 204
    link = sent_link()
    assert sign_in_from(7, email, WRONG, link=link).status_code == 401
    response = sign_in_from(7, email, PASSWORD, link=link)
    assert response.status_code == 200
    # The browser is known from then on.
    assert attempts.DEVICE_COOKIE in response.cookies


def test_a_mails_link_has_a_count_of_its_own(tenant):
    email = tenant.owner.email
    ApiClient().post("/session/link", {"email": email})
    link = sent_link()
    for _ in range(5):
        assert sign_in_from(7, email, WRONG, link=link).status_code == 401
    assert sign_in_from(8, email, PASSWORD, link=link).status_code == 429
    assert sign_in_from(7, email, PASSWORD).status_code == 200


def test_a_mails_link_is_for_its_account_and_an_hour(tenant, other_tenant, later, monkeypatch):
    ApiClient().post("/session/link", {"email": tenant.owner.email})
    link = sent_link()
    guess_from_many(other_tenant.owner.email)
    assert sign_in_from(7, other_tenant.owner.email, PASSWORD, link=link).status_code == 429
    guess_from_many(tenant.owner.email)
    for bad in ("", "made:up", link[:-1] + "!"):
        assert sign_in_from(7, tenant.owner.email, PASSWORD, link=bad or None).status_code == 429
    monkeypatch.setattr(attempts, "LINK_AGE", -attempts.LINK_AGE)
    assert sign_in_from(7, tenant.owner.email, PASSWORD, link=link).status_code == 429


def test_who_guesses_in_the_owners_network_keeps_no_known_browser_out(tenant):
    browser = signed_in(tenant.owner)
    limit = config().limits.signins_failed_per_address
    for number in range(limit):
        body = {"email": f"nobody{number}@acme.example", "password": WRONG}
        assert ApiClient().post("/session", body).status_code == 401
    assert_problem(Browser().sign_in(tenant.owner), 429, "too_many_requests")
    assert browser.sign_in(tenant.owner).status_code == 200


def test_nobody_learns_from_the_link_who_has_an_account(tenant):
    for email in (tenant.owner.email, "nobody@acme.example"):
        response = ApiClient().post("/session/link", {"email": email})
        assert (response.status_code, response.content) == (204, b"")
    run_outbox()
    assert [message.to for message in mail.outbox] == [[tenant.owner.email]]


def test_a_browser_that_was_signed_in_is_not_kept_out_by_who_guesses(tenant):
    browser = signed_in(tenant.owner)
    browser.delete("/session")
    guess_from_many(tenant.owner.email)
    assert Browser().sign_in(tenant.owner).status_code == 429
    assert browser.sign_in(tenant.owner).status_code == 200


def test_a_known_browser_waits_for_its_own_guesses(tenant):
    browser = signed_in(tenant.owner)
    for _ in range(5):
        assert browser.sign_in(tenant.owner, WRONG).status_code == 401
    assert browser.sign_in(tenant.owner).status_code == 429
    assert Browser().sign_in(tenant.owner).status_code == 200


def test_a_browser_that_signed_up_is_known(db):
    browser, email = Browser(), "ada@acme.example"
    body = {"email": email, "password": PASSWORD, "organization_name": "A", "session": True}
    assert browser.post("/signup", body).status_code == 201
    guess_from_many(email)
    assert browser.post("/session", {"email": email, "password": PASSWORD}).status_code == 200


def test_a_browser_is_known_for_one_account(tenant, other_tenant):
    browser = signed_in(other_tenant.owner)
    guess_from_many(tenant.owner.email)
    assert browser.sign_in(tenant.owner).status_code == 429


def test_a_made_up_device_is_none(tenant):
    browser = Browser()
    browser.client.cookies[attempts.DEVICE_COOKIE] = "eyJhIjoxfQ:made:up"
    guess_from_many(tenant.owner.email)
    assert browser.sign_in(tenant.owner).status_code == 429


def test_a_new_password_ends_the_wait_and_forgets_other_browsers(tenant, later):
    """Else who knew the old one would have as many counts as browsers to guess the new one with."""
    thief, owner = signed_in(tenant.owner), signed_in(tenant.owner)
    guess_from_many(tenant.owner.email)
    assert Browser().sign_in(tenant.owner).status_code == 429
    later(seconds=1)
    changed = owner.post("/session/password", {"current_password": PASSWORD, "new_password": NEW})
    assert changed.status_code == 204
    assert Browser().sign_in(tenant.owner, NEW).status_code == 200
    guess_from_many(tenant.owner.email, first=150)
    assert thief.sign_in(tenant.owner, NEW).status_code == 429
    assert owner.sign_in(tenant.owner, NEW).status_code == 200


def test_what_is_a_day_ago_is_forgotten(tenant, later):
    for _ in range(5):
        sign_in_from(9, tenant.owner.email, WRONG)
    assert purge_attempts() == 0
    later(days=1)
    assert sign_in_from(9, tenant.owner.email, WRONG).status_code == 401
    assert {row.failures for row in FailedAttempts.objects.all()} == {1}
    later(days=1)
    assert purge_attempts() == 2
