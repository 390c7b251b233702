"""Guessing a password: many addresses do not make it faster, and it does not lock the owner out."""

import pytest
from django.test import Client

from console.base.accounts.models import FailedAttempts
from console.base.accounts.services import attempts, purge_attempts
from tests.console.browsers import Browser, signed_in
from tests.console.cases import assert_problem
from tests.console.factories import PASSWORD

WRONG = "a wrong password"
# The clock moves only when a test says so, so that a slow machine does not change the waits.
pytestmark = pytest.mark.usefixtures("later")


def sign_in_from(number, email, password):
    """Signs in from the address 192.0.2.`number`; returns the response."""
    client = Client(raise_request_exception=False, REMOTE_ADDR=f"192.0.2.{number}")
    body = {"email": email, "password": password}
    return client.post("/api/v1/session", body, content_type="application/json")


@pytest.mark.parametrize(
    ("failures", "seconds"),
    [(0, 0), (4, 0), (5, 5), (6, 10), (7, 20), (12, 640), (13, 900), (1_000_000, 900)],
)
def test_the_wait_doubles_up_to_a_quarter_of_an_hour(failures, seconds):
    assert attempts.wait_s(failures) == seconds


@pytest.mark.parametrize("known", [True, False])
def test_guesses_from_many_addresses_make_the_account_wait(tenant, later, known):
    email = tenant.owner.email if known else "nobody@acme.example"
    for number in range(5):
        response = sign_in_from(number, email, WRONG)
        assert_problem(response, 401, "invalid_credentials")
    response = sign_in_from(5, email, PASSWORD)
    document = assert_problem(response, 429, "too_many_requests")
    assert document["quota"] == {"name": "wrong_attempts_in_a_row", "limit": 5, "used": 5}
    assert response["Retry-After"] == "5"
    later(seconds=5)
    assert_problem(sign_in_from(6, email, WRONG), 401, "invalid_credentials")
    response = sign_in_from(7, email, WRONG)
    assert_problem(response, 429, "too_many_requests")
    assert response["Retry-After"] == "10"


def test_who_waited_gets_in_and_begins_anew(tenant, later):
    for number in range(5):
        sign_in_from(number, tenant.owner.email, WRONG)
    later(seconds=5)
    assert sign_in_from(6, tenant.owner.email, PASSWORD).status_code == 200
    assert not FailedAttempts.objects.exists()


def test_a_browser_that_was_signed_in_is_not_kept_out_by_who_guesses(tenant):
    browser = signed_in(tenant.owner)
    browser.delete("/session")
    for number in range(9):
        sign_in_from(number, tenant.owner.email, WRONG)
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
    for number in range(9):
        sign_in_from(number, email, WRONG)
    assert browser.post("/session", {"email": email, "password": PASSWORD}).status_code == 200


def test_a_browser_is_known_for_one_account(tenant, other_tenant):
    browser = signed_in(other_tenant.owner)
    for number in range(5):
        sign_in_from(number, tenant.owner.email, WRONG)
    assert browser.sign_in(tenant.owner).status_code == 429


def test_a_made_up_device_is_none(tenant):
    browser = Browser()
    browser.client.cookies[attempts.DEVICE_COOKIE] = "eyJhIjoxfQ:made:up"
    for number in range(5):
        sign_in_from(number, tenant.owner.email, WRONG)
    assert browser.sign_in(tenant.owner).status_code == 429


def test_who_sets_the_password_anew_need_not_wait(tenant):
    for number in range(9):
        sign_in_from(number, tenant.owner.email, WRONG)
    attempts.clear_attempts(attempts.account_subject(tenant.owner.email))
    assert Browser().sign_in(tenant.owner).status_code == 200


def test_what_is_a_day_ago_is_forgotten(tenant, later):
    for number in range(9):
        sign_in_from(number, tenant.owner.email, WRONG)
    assert purge_attempts() == 0
    later(days=1)
    assert sign_in_from(9, tenant.owner.email, WRONG).status_code == 401
    assert FailedAttempts.objects.get().failures == 1
    later(days=1)
    assert purge_attempts() == 1
