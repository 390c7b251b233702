"""Admission of requests: allowed addresses, and the second factor that an organization requires."""

import dataclasses

import pyotp
import pytest

from console.base.accounts import services
from console.base.accounts.models import Membership, UserSession
from console.base.common.actor import Role
from console.base.common.clock import now
from console.base.common.conf import config
from console.base.common.models import AuditEntry
from console.base.common.tenancy import organization_scope
from tests.console.browsers import Browser, signed_in
from tests.console.cases import assert_problem
from tests.console.clients import ApiClient
from tests.console.factories import AGAIN

CURRENT = "/organizations/current"
HERE = "127.0.0.1"
ELSEWHERE = ["192.0.2.0/24", "2001:db8::/32"]


def allow_networks(tenant, networks):
    response = ApiClient(tenant.key).patch(
        CURRENT, {"allowed_addresses": networks}, query={"force": "true"}
    )
    assert response.status_code == 200, response.content


def from_address(client, address):
    client.client.defaults["REMOTE_ADDR"] = address
    return client


def refusals(tenant):
    with organization_scope(tenant.id):
        return list(AuditEntry.objects.filter(action="access.refuse"))


def test_networks_are_stored_in_canonical_form_and_audited(api, tenant):
    networks = ["127.0.0.0/8", "2001:DB8::/32", "192.0.2.7"]
    response = api().patch(CURRENT, {"allowed_addresses": networks})
    assert response.status_code == 200, response.content
    canonical = ["127.0.0.0/8", "2001:db8::/32", "192.0.2.7/32"]
    assert response.json()["allowed_addresses"] == canonical
    assert response["ETag"] == '"2"'
    with organization_scope(tenant.id):
        entry = AuditEntry.objects.get(action="organization.update")
    assert entry.detail == {"allowed_addresses": {"from": [], "to": canonical}}


@pytest.mark.parametrize(
    ("networks", "pointer"),
    [
        (["192.0.2.1/24"], "/allowed_addresses/0"),
        (["127.0.0.1", "x"], "/allowed_addresses/1"),
        (["127.0.0.1"] * 101, "/allowed_addresses"),
        (None, "/allowed_addresses"),
    ],
)
def test_what_is_no_network_is_pointed_to(api, networks, pointer):
    response = api().patch(CURRENT, {"allowed_addresses": networks})
    document = assert_problem(response, 422, "validation_failed")
    assert document["errors"][0]["pointer"] == pointer


def test_who_would_lock_themself_out_is_asked_again(api, tenant):
    response = api().patch(CURRENT, {"allowed_addresses": ELSEWHERE})
    document = assert_problem(response, 422, "would_lock_out")
    assert document["errors"][0]["pointer"] == "/allowed_addresses"
    assert api().get(CURRENT).json()["allowed_addresses"] == []
    allow_networks(tenant, ELSEWHERE)
    assert_problem(api().get(CURRENT), 403, "address_not_allowed")


def test_keys_come_in_from_allowed_addresses_alone(tenant):
    allow_networks(tenant, ELSEWHERE)
    client = ApiClient(tenant.key)
    for address, status in [
        ("192.0.2.1", 200),
        ("::ffff:192.0.2.1", 200),
        ("2001:db8:7::1", 200),
        ("198.51.100.1", 403),
        ("2001:db9::1", 403),
        ("", 403),
    ]:
        assert from_address(client, address).get(CURRENT).status_code == status, address


def test_people_come_in_from_allowed_addresses_alone(tenant, other_tenant):
    """Signing in works from anywhere, because the person may belong to other organizations."""
    with organization_scope(other_tenant.id):
        Membership.objects.create(
            organization=other_tenant.organization, user=tenant.owner, role=Role.VIEWER
        )
    browser = signed_in(tenant.owner)
    allow_networks(tenant, ELSEWHERE)
    assert_problem(browser.get(CURRENT), 403, "address_not_allowed")
    shown = browser.get("/session").json()
    assert shown["user"]["id"] == tenant.owner.pk
    assert "192.0.2.0" not in str(shown)
    switched = browser.patch("/session", {"organization_id": other_tenant.id})
    assert switched.status_code == 200
    assert browser.get(CURRENT).json()["id"] == other_tenant.id
    other = from_address(Browser(), "192.0.2.1")
    other.sign_in(tenant.owner)
    assert other.get(CURRENT).json()["id"] == tenant.id


def test_behind_a_proxy_the_address_is_the_one_that_it_saw(tenant, settings):
    allow_networks(tenant, ELSEWHERE)
    web = dataclasses.replace(config().web, behind_proxy=True)
    settings.FRESHET = dataclasses.replace(config(), web=web)
    client = ApiClient(tenant.key)
    for forwarded, status in [
        ("192.0.2.1", 200),
        # The proxy adds its address behind those that the caller sent.
        ("192.0.2.1, 198.51.100.1", 403),
        ("198.51.100.1, 192.0.2.1:4711", 200),
    ]:
        response = client.get(CURRENT, headers={"X-Forwarded-For": forwarded})
        assert response.status_code == status, forwarded


def test_a_refusal_is_audited_once_in_a_while(tenant):
    allow_networks(tenant, ELSEWHERE)
    client = ApiClient(tenant.key)
    for address in ("198.51.100.1", "198.51.100.1", "198.51.100.2"):
        assert from_address(client, address).get("/clusters").status_code == 403
    entries = refusals(tenant)
    assert sorted(entry.address for entry in entries) == ["198.51.100.1", "198.51.100.2"]
    assert entries[0].detail == {"reason": "address_not_allowed"}
    assert entries[0].actor_kind == "api_key"


def test_a_refused_change_changes_nothing_but_the_audit_log(tenant):
    allow_networks(tenant, ELSEWHERE)
    response = ApiClient(tenant.key).post("/api-keys", {"name": "x"})
    assert_problem(response, 403, "address_not_allowed")
    with organization_scope(tenant.id):
        assert not AuditEntry.objects.filter(action="api_key.create", detail__name="x").exists()
    assert len(refusals(tenant)) == 1


def test_a_wrong_key_is_a_wrong_key_from_anywhere(tenant):
    allow_networks(tenant, ELSEWHERE)
    assert_problem(ApiClient(tenant.key[:-2] + "aa").get(CURRENT), 401, "not_authenticated")
    assert refusals(tenant) == []


def test_what_is_open_ends_with_the_address(tenant):
    actor = services.authenticate_key(text=tenant.key, address=HERE)
    assert services.renew_actor(actor) is not None
    allow_networks(tenant, ELSEWHERE)
    assert services.renew_actor(actor) is None


def require_second_factor(tenant):
    client = ApiClient(tenant.key)
    assert client.patch(CURRENT, {"two_factor_required": True}).status_code == 200


def enrol(browser):
    secret = browser.post("/session/totp", AGAIN).json()["secret"]
    body = {"code": pyotp.TOTP(secret).at(now())}
    confirmed = browser.post("/session/totp/confirm", body)
    assert confirmed.status_code == 200
    browser.csrf_token = browser.get("/session").json()["csrf_token"]
    return confirmed.json()["recovery_codes"]


def test_without_a_second_factor_only_its_enrolment_is_reached(tenant):
    browser = signed_in(tenant.owner)
    require_second_factor(tenant)
    for path in (CURRENT, "/clusters", "/api-keys", "/audit-log", "/invoices"):
        assert_problem(browser.get(path), 403, "second_factor_required")
    assert_problem(browser.post("/clusters", {"name": "x"}), 403, "second_factor_required")
    shown = browser.get("/session").json()
    assert shown["organization"]["two_factor_required"] is True
    assert browser.get("/sessions").status_code == 200
    enrol(browser)
    assert browser.get(CURRENT).status_code == 200
    # API keys need no second factor.
    assert ApiClient(tenant.key).get(CURRENT).status_code == 200


def test_a_session_that_showed_none_does_not_profit_from_another(tenant):
    browser = signed_in(tenant.owner)
    enrol(browser)
    UserSession.objects.update(second_factor=False)
    require_second_factor(tenant)
    assert_problem(browser.get(CURRENT), 403, "second_factor_required")


def test_who_requires_a_second_factor_has_one(tenant):
    browser = signed_in(tenant.owner)
    response = browser.patch(CURRENT, {"two_factor_required": True})
    document = assert_problem(response, 422, "would_lock_out")
    assert document["errors"][0]["pointer"] == "/two_factor_required"
    enrol(browser)
    assert browser.patch(CURRENT, {"two_factor_required": True}).status_code == 200
    assert browser.patch(CURRENT, {"two_factor_required": True}).json()["generation"] == 2


def test_who_removes_the_second_factor_is_out_again(tenant):
    browser = signed_in(tenant.owner)
    codes = enrol(browser)
    require_second_factor(tenant)
    assert browser.get(CURRENT).status_code == 200
    assert browser.delete("/session/totp", body={**AGAIN, "code": codes[0]}).status_code == 204
    assert_problem(browser.get(CURRENT), 403, "second_factor_required")


@pytest.mark.parametrize("role", [Role.DEVELOPER, Role.BILLING, Role.VIEWER])
def test_others_do_not_say_who_comes_in(tenant, role):
    client = ApiClient(tenant.keys[role])
    for name, value in (("allowed_addresses", []), ("two_factor_required", False)):
        assert_problem(client.patch(CURRENT, {name: value}), 403, "permission_denied")
