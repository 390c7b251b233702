"""An address counts when it is proved: who signs up first with somebody's address keeps nothing."""

import re

import pyotp
import pytest
from django.core import mail

from console.base.accounts import services
from console.base.accounts.models import (
    Invitation,
    Membership,
    Organization,
    SecondFactor,
    User,
)
from console.base.accounts.services.address_mails import MAILS_MAX
from console.base.common.actor import Role, system_actor
from console.base.common.clock import now
from console.base.common.models import AuditEntry
from console.base.common.tenancy import organization_scope
from tests.console.browsers import Browser, signed_in
from tests.console.cases import assert_problem
from tests.console.clients import ApiClient
from tests.console.factories import AGAIN, PASSWORD, make_user
from tests.console.outbox import run_outbox

EMAIL = "ada@acme.example"
SIGN_UP = {"email": EMAIL, "password": PASSWORD, "organization_name": "Taken", "session": True}
OWN = "an own and longer sentence"


class Squatter:
    """Somebody who signed up with an address that is not theirs."""

    def __init__(self):
        self.browser = Browser()
        answer = self.browser.post("/signup", SIGN_UP)
        assert answer.status_code == 201, answer.content
        self.organization_id = answer.json()["organization"]["id"]
        self.key = ApiClient(answer.json()["api_key"]["secret"])
        self.browser.csrf_token = self.browser.get("/session").json()["csrf_token"]

    @property
    def user(self):
        return User.objects.get(email=EMAIL)


@pytest.fixture
def squatter(db):
    return Squatter()


def mailed(pattern):
    """Runs the outbox; returns what the pattern captures in the newest mail that has it."""
    run_outbox()
    matches = [match for message in mail.outbox for match in re.findall(pattern, message.body)]
    return matches[-1]


def reset(password=OWN):
    """Sets the password as who reads the address's mail does; returns the browser."""
    browser = Browser()
    assert browser.post("/password-reset", {"email": EMAIL}).status_code == 204
    token = mailed(r"/password-reset#(\S+)")
    answer = browser.post("/password-reset/confirm", {"token": token, "password": password})
    assert answer.status_code == 204, answer.content
    return browser


def test_who_knows_the_first_password_does_not_end_the_owners_link(squatter):
    """A sign-in and a change of the password end the links of proved accounts."""
    owner = Browser()
    owner.post("/password-reset", {"email": EMAIL})
    token = mailed(r"/password-reset#(\S+)")
    assert Browser().sign_in(squatter.user).status_code == 200
    body = {"current_password": PASSWORD, "new_password": "another of the squatter"}
    assert squatter.browser.post("/session/password", body).status_code == 204
    body = {"token": token, "password": OWN}
    assert owner.post("/password-reset/confirm", body).status_code == 204
    assert squatter.browser.user_id is None
    # It is good once.
    assert_problem(owner.post("/password-reset/confirm", body), 422, "reset_token_invalid")


def audited(organization_id):
    with organization_scope(organization_id):
        return {entry.action: entry.detail for entry in AuditEntry.objects.order_by("created_at")}


def test_an_address_that_is_not_proved_has_no_second_factor(squatter):
    refused = squatter.browser.post("/session/totp", AGAIN)
    document = assert_problem(refused, 403, "not_verified")
    assert "link of the mail" in document["detail"]
    assert not SecondFactor.objects.exists()
    token = mailed(r"/verify\?token=(\S+)")
    assert squatter.browser.post("/signup/verify", {"token": token}).status_code == 200
    assert squatter.browser.post("/session/totp", AGAIN).status_code == 200


def test_a_reset_ends_all_that_the_squatter_had(squatter):
    other = Browser()
    other.sign_in(squatter.user)
    account = squatter.browser.post("/service-accounts", {"name": "ci", "role": "admin"}).json()
    body = {"name": "ci", "service_account_id": account["id"]}
    of_account = ApiClient(squatter.browser.post("/api-keys", body).json()["secret"])
    made_by_account = ApiClient(
        of_account.post("/api-keys", {"name": "more", "role": "viewer"}).json()["secret"]
    )
    keys = (squatter.key, of_account, made_by_account)
    assert all(key.get("/organizations/current").status_code == 200 for key in keys)

    browser = reset()
    assert squatter.browser.user_id is None
    assert other.user_id is None
    for key in keys:
        assert_problem(key.get("/organizations/current"), 401, "not_authenticated")
    assert_problem(Browser().sign_in(squatter.user), 401, "invalid_credentials")
    assert browser.sign_in(squatter.user, OWN).status_code == 200
    shown = browser.get("/session").json()
    assert shown["user"]["email_verified"] is True
    # The organization and what is in it stay, and are the owner's.
    assert [row["id"] for row in shown["organizations"]] == [squatter.organization_id]
    assert browser.get("/organizations/current").json()["verified"] is True
    detail = audited(squatter.organization_id)["user.take_over"]
    assert len(detail["revoked_keys"]) == 3
    run_outbox()
    assert "nobody had confirmed" in next(
        str(message.body) for message in mail.outbox if "has ended" in message.subject
    )


def test_a_reset_removes_a_second_factor_that_was_added_before_this_rule(squatter):
    User.objects.update(email_verified_at=now())
    begun = squatter.browser.post("/session/totp", AGAIN).json()
    code = pyotp.TOTP(begun["secret"]).at(now())
    assert squatter.browser.post("/session/totp/confirm", {"code": code}).status_code == 200
    User.objects.update(email_verified_at=None)
    browser = reset()
    assert browser.sign_in(squatter.user, OWN).status_code == 200
    assert browser.get("/session").json()["user"]["two_factor"] is False


def test_what_would_lock_the_owner_out_is_lifted(squatter):
    with organization_scope(squatter.organization_id):
        Organization.objects.update(allowed_addresses=["192.0.2.0/24"], two_factor_required=True)
    browser = reset()
    browser.sign_in(squatter.user, OWN)
    shown = browser.get("/organizations/current")
    assert shown.status_code == 200
    assert (shown.json()["allowed_addresses"], shown.json()["two_factor_required"]) == ([], False)


def test_members_and_invitations_of_the_squatter_go(squatter):
    second = make_user("second@squatter.example")
    with organization_scope(squatter.organization_id):
        organization = Organization.objects.get()
        Membership.objects.create(organization=organization, user=second, role=Role.ADMIN)
        services.create_invitation(
            actor=system_actor(organization.pk), email="third@squatter.example", role=Role.ADMIN
        )
    accomplice = signed_in(second)
    assert accomplice.get("/organizations/current").status_code == 200
    reset()
    assert accomplice.get("/organizations/current").status_code in {401, 403}
    with organization_scope(squatter.organization_id):
        assert [row.state for row in Invitation.objects.all()] == ["revoked"]
        assert Membership.objects.count() == 1


def test_an_organization_that_another_owner_has_proved_stays_as_it_is(squatter, tenant):
    """Only what the account itself made there ends."""
    with organization_scope(tenant.id):
        membership = Membership.objects.create(
            organization=tenant.organization, user=squatter.user, role=Role.OWNER
        )
    squatter.browser.patch("/session", {"organization_id": tenant.id})
    made = ApiClient(squatter.browser.post("/api-keys", {"name": "made"}).json()["secret"])
    assert made.get("/organizations/current").json()["id"] == tenant.id
    reset()
    assert made.get("/organizations/current").status_code == 401
    assert ApiClient(tenant.key).get("/organizations/current").status_code == 200
    with organization_scope(tenant.id):
        assert Membership.objects.filter(pk=membership.pk).exists()
        assert Membership.objects.filter(user=tenant.owner).exists()


def test_a_proved_account_keeps_its_keys_at_a_reset(squatter):
    token = mailed(r"/verify\?token=(\S+)")
    assert squatter.browser.post("/signup/verify", {"token": token}).status_code == 200
    reset()
    assert squatter.key.get("/organizations/current").status_code == 200
    assert "user.take_over" not in audited(squatter.organization_id)


def test_the_proof_link_alone_confirms_no_account(squatter, other_tenant):
    """The owner of the address may open a link that they did not expect."""
    token = mailed(r"/verify\?token=(\S+)")
    for browser in (ApiClient(), signed_in(other_tenant.owner)):
        document = assert_problem(
            browser.post("/signup/verify", {"token": token}), 422, "sign_up_not_shown"
        )
        assert "password of the sign-up" in document["title"]
        wrong = browser.post("/signup/verify", {"token": token, "password": OWN})
        assert_problem(wrong, 422, "current_password_wrong")
    assert squatter.user.email_verified_at is None


def test_the_proof_link_asks_for_the_password_where_nobody_is_signed_in(squatter):
    token = mailed(r"/verify\?token=(\S+)")
    answer = ApiClient().post("/signup/verify", {"token": token, "password": PASSWORD})
    assert answer.status_code == 200, answer.content
    assert answer.json()["email_verified"] is True
    assert squatter.key.get("/organizations/current").json()["verified"] is True
    # Repeating it needs no password, and changes nothing.
    assert ApiClient().post("/signup/verify", {"token": token}).status_code == 200


def test_guesses_at_the_proof_link_are_counted(squatter):
    token = mailed(r"/verify\?token=(\S+)")
    for _ in range(5):
        ApiClient().post("/signup/verify", {"token": token, "password": OWN})
    refused = ApiClient().post("/signup/verify", {"token": token, "password": PASSWORD})
    assert_problem(refused, 429, "too_many_requests")


def test_a_squatters_devices_are_not_known_to_the_owners_account(squatter):
    reset()
    for number in range(50):
        client = Browser()
        client.client.defaults["REMOTE_ADDR"] = f"192.0.2.{number // 4}"
        client.sign_in(squatter.user, PASSWORD)
    assert_problem(squatter.browser.sign_in(squatter.user, OWN), 429, "too_many_requests")


def invited(tenant):
    """Invites the address; returns the token that its owner gets."""
    body = {"email": EMAIL, "role": "developer"}
    assert ApiClient(tenant.key).post("/invitations", body).status_code == 201
    return mailed(r"/invitation#(\S+)")


def test_an_unproved_account_keeps_nobody_from_accepting_an_invitation(squatter, tenant):
    token, owner = invited(tenant), Browser()
    assert_problem(owner.post("/invitations/accept", {"token": token}), 422, "validation_failed")
    body = {"token": token, "password": OWN, "name": "Ada"}
    answer = owner.post("/invitations/accept", body)
    assert answer.status_code == 201, answer.content
    assert owner.get("/organizations/current").json()["id"] == tenant.id
    assert squatter.user.email_verified_at is not None
    assert squatter.browser.user_id is None
    assert squatter.key.get("/organizations/current").status_code == 401
    assert_problem(Browser().sign_in(squatter.user), 401, "invalid_credentials")


def test_who_is_signed_in_and_accepts_has_proved_the_address(squatter, tenant):
    token = invited(tenant)
    answer = squatter.browser.post("/invitations/accept", {"token": token})
    assert answer.status_code == 201, answer.content
    assert squatter.user.email_verified_at is not None
    assert squatter.key.get("/organizations/current").json()["verified"] is True


def test_a_sign_up_with_a_taken_address_is_mailed_to_its_owner(squatter):
    run_outbox()
    mail.outbox.clear()
    assert_problem(ApiClient().post("/signup", SIGN_UP), 409, "email_taken")
    token = mailed(r"/password-reset#(\S+)")
    (message,) = mail.outbox
    assert (message.to, message.subject) == ([EMAIL], "Your address has an account already")
    body = {"token": token, "password": OWN}
    assert ApiClient().post("/password-reset/confirm", body).status_code == 204
    assert squatter.key.get("/organizations/current").status_code == 401


def test_mails_of_taken_addresses_are_limited_and_stop_no_reset(squatter):
    run_outbox()
    mail.outbox.clear()
    for number in range(MAILS_MAX + 2):
        client = ApiClient()
        client.client.defaults["REMOTE_ADDR"] = f"192.0.2.{number}"
        assert client.post("/signup", SIGN_UP).status_code == 409
    run_outbox()
    assert len(mail.outbox) == MAILS_MAX
    assert reset().sign_in(squatter.user, OWN).status_code == 200
