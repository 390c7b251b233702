"""Sign-up, the verification of an address, and the limits of both."""

import re
import threading
from datetime import timedelta

import pytest
from django.contrib.auth import get_user_model
from django.core import mail
from django.db import connection, connections

from console.base.accounts.models import Membership, Organization
from console.base.accounts.services import verification
from console.base.accounts.signals import organization_signed_up, organization_verified
from console.base.common.actor import Role
from console.base.common.clock import now
from console.base.common.conf import config
from console.base.common.requests import network_of
from console.base.common.tenancy import organization_scope, system_scope
from tests.console.cases import assert_problem
from tests.console.clients import ApiClient
from tests.console.outbox import run_outbox

BODY = {"email": "ada@acme.example", "password": "engines and looms", "organization_name": "Acme"}


@pytest.fixture
def anybody(db):
    return ApiClient()


@pytest.fixture
def signals():
    """The signals of accounts that were sent, in order."""
    sent: list[tuple[object, ...]] = []

    def note_signup(actor, from_console, **_):
        sent.append(("signed up", actor.organization_id, from_console))

    def note_verified(organization_id, **_):
        sent.append(("verified", organization_id))

    organization_signed_up.connect(note_signup)
    organization_verified.connect(note_verified)
    yield sent
    organization_signed_up.disconnect(note_signup)
    organization_verified.disconnect(note_verified)


def token_of(message):
    return re.findall(r"/verify\?token=(\S+)", message.body)[0]


def test_sign_up_makes_an_organization_with_an_owner_and_a_key(anybody, signals):
    response = anybody.post("/signup", BODY)
    assert response.status_code == 201, response.content
    account = response.json()
    shown = ApiClient(account["api_key"]["secret"]).get("/organizations/current")
    assert shown.json() == account["organization"]
    assert (shown.json()["name"], shown.json()["verified"]) == ("Acme", False)
    with organization_scope(account["organization"]["id"]):
        membership = Membership.objects.get()
    assert (membership.role, membership.user.email) == (Role.OWNER, BODY["email"])
    assert signals == [("signed up", account["organization"]["id"], False)]
    assert "sessionid" not in response.cookies
    assert "freshet_session" not in response.cookies


def test_sign_up_in_the_console_signs_in(anybody, signals):
    response = anybody.post("/signup", {**BODY, "session": True})
    assert response.status_code == 201
    session = anybody.get("/session").json()
    assert session["user"]["email"] == BODY["email"]
    assert session["organization"]["id"] == response.json()["organization"]["id"]
    assert signals[0][2] is True


def test_an_address_is_kept_in_lower_case_and_taken_once(anybody):
    assert anybody.post("/signup", {**BODY, "email": "Ada@ACME.example"}).status_code == 201
    document = assert_problem(anybody.post("/signup", BODY), 409, "email_taken")
    assert document["errors"][0]["pointer"] == "/email"


@pytest.mark.parametrize(
    ("change", "pointer"),
    [
        ({"email": "ada"}, "/email"),
        ({"password": "short"}, "/password"),
        ({"password": "password1234"}, "/password"),
        ({"password": "12345678901"}, "/password"),
        ({"organization_name": " "}, "/organization_name"),
        ({"organization_name": "x" * 101}, "/organization_name"),
        ({"session": "perhaps"}, "/session"),
    ],
)
def test_sign_up_says_what_is_wrong(anybody, change, pointer):
    document = assert_problem(anybody.post("/signup", BODY | change), 422, "validation_failed")
    assert pointer in {error["pointer"] for error in document["errors"]}
    assert not get_user_model().objects.exists()


def test_sign_up_with_an_idempotency_key_happens_once(anybody):
    headers = {"Idempotency-Key": "one sign-up"}
    first = anybody.post("/signup", BODY, headers=headers)
    second = anybody.post("/signup", BODY, headers=headers)
    assert (first.status_code, second.status_code) == (201, 201)
    assert first.json() == second.json()
    with system_scope():
        assert Organization.objects.count() == 1


def test_sign_ups_of_an_address_are_limited(anybody, monkeypatch):
    limit = config().limits.signups_per_address
    for number in range(limit):
        body = {**BODY, "email": f"ada{number}@acme.example"}
        assert anybody.post("/signup", body).status_code == 201
    response = anybody.post("/signup", BODY)
    document = assert_problem(response, 429, "too_many_requests")
    assert document["quota"] == {
        "name": "signups_per_address",
        "limit": limit,
        "used": limit,
    }
    assert 0 < int(response["Retry-After"]) <= 3600
    assert response["RateLimit"].startswith('"signups_per_address";r=0;t=')

    in_an_hour = now() + timedelta(hours=1)
    monkeypatch.setattr("django.utils.timezone.now", lambda: in_an_hour)
    assert anybody.post("/signup", BODY).status_code == 201


def test_asking_for_taken_addresses_counts_against_the_limit(anybody):
    for _ in range(config().limits.signups_per_address):
        anybody.post("/signup", BODY)
    assert_problem(anybody.post("/signup", BODY), 429, "too_many_requests")


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("192.0.2.1", "192.0.2.2", False),
        ("192.0.2.1", "::ffff:192.0.2.1", True),
        ("2001:db8::1", "2001:db8::2:3:4:5", True),
        ("2001:db8::1", "2001:db8:0:1::1", False),
        ("unknown", "unknown", True),
    ],
)
def test_a_line_counts_as_one_address(one, other, same):
    assert (network_of(one) == network_of(other)) is same


def sign_up_together(bodies):
    """Sends sign-ups at the same time, from one thread each; returns the sorted statuses."""
    start = threading.Barrier(len(bodies))
    statuses = []

    def send(body):
        try:
            start.wait(60)
            statuses.append(ApiClient().post("/signup", body).status_code)
        finally:
            connections.close_all()

    threads = [threading.Thread(target=send, args=[body]) for body in bodies]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    return sorted(statuses)


@pytest.mark.django_db(transaction=True)
def test_of_two_sign_ups_at_once_with_one_address_one_succeeds():
    assert sign_up_together([BODY, BODY]) == [201, 409]


@pytest.mark.django_db(transaction=True)
def test_sign_ups_at_once_do_not_pass_the_limit_together():
    limit = config().limits.signups_per_address
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO accounts_addressevent (kind, address, created_at)"
            " SELECT 'signup', '127.0.0.1', now() FROM generate_series(1, %s)",
            [limit - 1],
        )
    bodies = [{**BODY, "email": f"ada{number}@acme.example"} for number in range(4)]
    assert sign_up_together(bodies) == [201, 429, 429, 429]


def test_the_mail_verifies_the_address(anybody, signals):
    account = anybody.post("/signup", BODY).json()
    run_outbox()
    (message,) = mail.outbox
    assert message.to == [BODY["email"]]
    token = token_of(message)
    response = anybody.post("/signup/verify", {"token": token, "password": BODY["password"]})
    assert response.status_code == 200, response.content
    assert response.json()["email_verified"] is True
    shown = ApiClient(account["api_key"]["secret"]).get("/organizations/current").json()
    assert shown["verified"] is True
    assert signals[1:] == [("verified", shown["id"])]

    assert anybody.post("/signup/verify", {"token": token}).status_code == 200
    assert len(signals) == 2


def test_a_changed_token_is_refused(anybody):
    anybody.post("/signup", BODY)
    run_outbox()
    token = token_of(mail.outbox[0])
    response = anybody.post("/signup/verify", {"token": token[:-1] + "!"})
    assert_problem(response, 422, "verification_token_invalid")


def test_an_old_token_is_refused(anybody, monkeypatch):
    anybody.post("/signup", BODY)
    run_outbox()
    monkeypatch.setattr(verification, "VALID", timedelta(seconds=-1))
    response = anybody.post("/signup/verify", {"token": token_of(mail.outbox[0])})
    assert_problem(response, 422, "verification_token_expired")


def test_a_mail_is_sent_again_without_revealing_to_whom(anybody):
    anybody.post("/signup", BODY)
    run_outbox()
    for email in (BODY["email"], "nobody@acme.example"):
        assert anybody.post("/signup/verification", {"email": email}).status_code == 204
    run_outbox()
    assert [message.to for message in mail.outbox] == [[BODY["email"]]] * 2


def test_a_verified_address_gets_no_further_mail(anybody):
    anybody.post("/signup", BODY)
    run_outbox()
    body = {"token": token_of(mail.outbox[0]), "password": BODY["password"]}
    assert anybody.post("/signup/verify", body).status_code == 200
    anybody.post("/signup/verification", {"email": BODY["email"]})
    run_outbox()
    assert len(mail.outbox) == 1
